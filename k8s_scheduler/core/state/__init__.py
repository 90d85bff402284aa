"""What the cluster looks like: nodes as columns, pods on them, what changed."""
