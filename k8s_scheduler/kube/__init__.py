"""The only code that talks to the API server.

Knows nothing of the core: it turns watches into (old, new) pairs and requests into writes.
"""
