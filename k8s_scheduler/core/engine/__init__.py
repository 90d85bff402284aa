"""What happens to a pod: decision, binding, failure."""
