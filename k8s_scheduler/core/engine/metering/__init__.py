"""Keeps kube-scheduler's metrics while the core works."""
