"""Requests to the API server: connections, deadlines, retries, and what answers mean."""
