"""k8s-scheduler: a Kubernetes scheduler that decides as kube-scheduler does.

The packages and what each may import: docs/architecture.md.
"""

__version__ = "0.1.0"
