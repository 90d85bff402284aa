"""ConfigMaps: as the API server has them, and as flags and configuration name them."""

import re
from dataclasses import dataclass

import msgspec

from k8s_scheduler.api.meta import ObjectMeta, Wire
from k8s_scheduler.api.names import is_namespace, is_subdomain

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class ConfigMap(Wire, frozen=True, gc=False):
    """Texts by key."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    data: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ConfigMapName:
    """Which ConfigMap, and which key of it; without a namespace: the one we run in."""

    name: str
    namespace: str = ""
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{place}:{self.key}" if self.key else place

    def within(self, namespace: str) -> "ConfigMapName":
        return ConfigMapName(self.name, self.namespace or namespace, self.key)

    def is_in_same_map(self, other: "ConfigMapName") -> bool:
        """Return whether both are of one ConfigMap, whatever the key."""
        return (self.namespace, self.name) == (other.namespace, other.name)

    @staticmethod
    def parse(text: str, *, with_key: bool = False) -> "ConfigMapName":
        """Read `[NAMESPACE/]NAME`, or `[NAMESPACE/]NAME[:KEY]`; ValueError says what is wrong."""
        place, colon, key = text.partition(":")
        if colon and not with_key:
            raise ValueError(f'"{text}" names a key; only NAMESPACE/NAME is expected')
        if colon and not _KEY.fullmatch(key):
            raise ValueError(f'"{key}" cannot be a key of a ConfigMap')
        namespace, slash, name = place.rpartition("/")
        if slash and not is_namespace(namespace):
            raise ValueError(f'"{namespace}" cannot be a namespace; NAMESPACE/NAME is expected')
        if not is_subdomain(name):
            raise ValueError(f'"{name}" cannot be the name of a ConfigMap')
        return ConfigMapName(name, namespace, key)
