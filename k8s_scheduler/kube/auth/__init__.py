"""How the process authenticates to the API server: logins, their sources, and their renewal."""
