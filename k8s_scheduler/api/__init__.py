"""Wire types and their algebra: what the API server says, and only what scheduling reads of it."""
