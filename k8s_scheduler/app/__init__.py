"""Joins core and shell: what is built how, starts when and stops in which order."""
