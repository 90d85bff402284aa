"""The binding cycle: from a decision to a Binding that the watch has confirmed."""
