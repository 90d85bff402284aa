"""What the API server fills in, for objects that come from a file."""
