"""The volumes that placed pods use."""
