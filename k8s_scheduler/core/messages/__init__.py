"""What comes into the core and what goes out of it."""
