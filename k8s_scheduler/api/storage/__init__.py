"""Volumes, claims and classes, as far as scheduling reads them."""
