"""The configuration file: its types, and the way from text to what it means."""
