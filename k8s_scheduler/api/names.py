"""Names as the API server accepts them, for values that end up in its objects or come from them."""

import re
from typing import Final

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

QUALIFIED_NAME_RULE: Final = (
    'must be a qualified name: up to 63 letters, digits, "-", "_" or ".", with a letter or digit '
    'at both ends, after an optional DNS name and "/"'
)


def is_qualified_name(text: str) -> bool:
    """Return whether the text can name a label or a resource, such as `example.com/gpu`."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def is_subdomain(text: str) -> bool:
    """Return whether the text can be the name of most objects: a DNS name."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_namespace(text: str) -> bool:
    """Return whether the text can be the name of a namespace: one label of a DNS name."""
    return len(text) <= 63 and "." not in text and is_subdomain(text)


def is_label_value(text: str) -> bool:
    """Return whether the text can be the value of a label; an empty one can."""
    return not text or (len(text) <= 63 and _NAME.fullmatch(text) is not None)


def is_extended_resource_name(text: str) -> bool:
    """Return whether the text names a resource that Kubernetes itself knows nothing of."""
    if "/" not in text or "kubernetes.io/" in text or text.startswith("requests."):
        return False
    return is_qualified_name(f"requests.{text}")
