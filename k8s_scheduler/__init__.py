"""k8s-scheduler: a Kubernetes scheduler that decides as kube-scheduler does.

The packages and who may import whom: docs/architecture.md.
"""

__version__ = "0.1.0"
