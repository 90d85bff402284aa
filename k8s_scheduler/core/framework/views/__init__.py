"""What plugins see of pods, nodes and other objects, and the record of what they have read."""
