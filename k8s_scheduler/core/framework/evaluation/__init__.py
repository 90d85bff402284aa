"""Runs the plugins of a profile over rows, as they are or with some pods more or less."""
