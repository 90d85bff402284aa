"""What the process shows of itself over HTTPS."""
