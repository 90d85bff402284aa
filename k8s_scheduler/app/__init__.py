"""Joins core and shell: who is built how, starts when and stops in which order."""
