"""The command line: it parses, asks `app` and prints; it decides nothing."""
