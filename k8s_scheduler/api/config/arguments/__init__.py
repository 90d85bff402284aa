"""The arguments that plugins take: their types, defaults and rules."""
