"""The RBAC rules that a configuration needs."""
