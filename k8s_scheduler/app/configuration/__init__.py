"""A process's configuration: where it comes from, and how another one takes effect."""
