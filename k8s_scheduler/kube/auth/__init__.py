"""Who we are to the API server: logins, their sources, and how they are kept valid."""
