"""The core without a cluster: files in, decisions out."""
