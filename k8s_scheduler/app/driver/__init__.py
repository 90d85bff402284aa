"""Drives the core: messages in, instructions out, and the record of both."""
