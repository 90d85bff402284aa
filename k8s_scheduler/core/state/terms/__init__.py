"""The affinity terms that placed pods hold."""
