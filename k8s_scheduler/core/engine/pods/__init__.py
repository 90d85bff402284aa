"""Where pods are between the queue and their node, and the directory that says where one is."""
