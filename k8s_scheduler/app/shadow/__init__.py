"""`k8s-scheduler shadow` as a process."""
