"""Nodes as columns: facts, labels, images, host ports."""
