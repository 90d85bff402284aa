"""Keeping stores equal to what the API server has: lists, watches, and the comparison of both."""
