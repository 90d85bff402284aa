"""The configuration file of kwok: our options, then the stages taken from its module.

The plain kwok controller has neither stages nor parallelism built in and listens on every
address unless told otherwise, so all of it is said here.
"""

from pathlib import Path

import yaml

_PARALLELISM = 4


def write_config(path: Path, *, stages: Path, port: int, node_lease_seconds: int) -> None:
    """Write the configuration for one bed."""
    options = {
        "cidr": "10.244.0.0/16",
        "nodeIP": "127.0.0.1",
        "nodePort": port,
        "serverAddress": f"127.0.0.1:{port}",
        "manageAllNodes": True,
        "manageNodesWithAnnotationSelector": "",
        "nodeLeaseDurationSeconds": node_lease_seconds,
        "podPlayStageParallelism": _PARALLELISM,
        "nodePlayStageParallelism": _PARALLELISM,
        "nodeLeaseParallelism": _PARALLELISM,
        "podsOnNodeSyncParallelism": _PARALLELISM,
        "enablePodsOnNodeSyncStreamWatch": True,
        "enableDebuggingHandlers": True,
    }
    head = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": options,
    }
    text = yaml.safe_dump(head, sort_keys=False) + "---\n" + stages.read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
