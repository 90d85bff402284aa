"""Who is tried next."""
