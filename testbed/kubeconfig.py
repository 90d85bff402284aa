"""Writing and reading kubeconfigs.

What is written holds its certificates inline: the file can be copied anywhere and outlives a
change of folder. What is read is only what this module writes.
"""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.layout import write_private

_NAME = "testbed"


@dataclass(frozen=True, slots=True)
class Access:
    """How a token reaches an API server."""

    server: str
    ca_pem: str
    token: str


def write_token_kubeconfig(path: Path, access: Access) -> Path:
    """Write a kubeconfig that authenticates by bearer token; return its path."""
    return _write(path, access.server, access.ca_pem, user={"token": access.token})


def write_certificate_kubeconfig(
    path: Path, *, server: str, ca_pem: str, certificate_pem: str, key_pem: str
) -> Path:
    """Write a kubeconfig that authenticates by client certificate; return its path."""
    user = {
        "client-certificate-data": _base64(certificate_pem),
        "client-key-data": _base64(key_pem),
    }
    return _write(path, server, ca_pem, user=user)


def read_token_kubeconfig(path: Path) -> Access:
    """Read back a kubeconfig written by `write_token_kubeconfig`."""
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    cluster = document["clusters"][0]["cluster"]
    ca_pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
    token = document["users"][0]["user"]["token"]
    return Access(server=cluster["server"], ca_pem=ca_pem, token=token)


def _write(path: Path, server: str, ca_pem: str, *, user: dict[str, str]) -> Path:
    cluster = {"server": server, "certificate-authority-data": _base64(ca_pem)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
    return path


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
