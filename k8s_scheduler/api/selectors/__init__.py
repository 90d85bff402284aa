"""Label and node selectors: wire types, one compiled form, and what is wrong with a bad one."""
