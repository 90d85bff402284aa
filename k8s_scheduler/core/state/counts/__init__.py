"""How many placed pods match a selector: on each row and in each domain."""
