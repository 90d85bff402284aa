"""Profiles: the plugins that a profile names, and what it comes to at each extension point."""
