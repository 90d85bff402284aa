"""Paths that are served to every client: kube-scheduler's `--authorization-always-allow-paths`."""

from collections.abc import Iterable
from typing import Final

HEALTH_PATHS: Final = ("/healthz", "/readyz", "/livez")


class OpenPaths:
    """A list of paths; one that ends in `*` stands for all that begin so."""

    def __init__(self, patterns: Iterable[str] = HEALTH_PATHS) -> None:
        """Take patterns; ValueError for a `*` that is not at the end."""
        trimmed = [pattern.removeprefix("/") for pattern in patterns]
        for pattern in trimmed:
            if "*" in pattern[:-1]:
                raise ValueError(f'only trailing * allowed in "{pattern}"')
        self._exact = frozenset(p for p in trimmed if not p.endswith("*"))
        self._prefixes = tuple(p[:-1] for p in trimmed if p.endswith("*"))

    def __contains__(self, path: str) -> bool:
        path = path.removeprefix("/")
        return path in self._exact or path.startswith(self._prefixes)
