"""How much of each resource nodes offer and pods take."""
