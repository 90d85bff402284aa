"""Placed and nominated pods as columns."""
