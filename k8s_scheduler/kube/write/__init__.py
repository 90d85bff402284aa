"""What is written about pods: bindings, conditions and the writes that pods wait for."""
