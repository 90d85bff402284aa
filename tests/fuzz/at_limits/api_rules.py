"""What an API server takes: rules that objects at its limits keep, so that none would be refused.

Names, labels and quantities are made by these functions only. A sample of the pods and nodes is
sent to a real API server, which takes them (`tests/integration/test_objects_at_limits.py`); objects
of other kinds are not.
"""

import json
from typing import Any

Raw = dict[str, Any]

# What etcd stores in one object; as JSON, which is longer than what is stored.
MAX_BYTES = 1_500_000
# All keys and values together.
MAX_ANNOTATION_BYTES = 256 * 1024
NAME_CHARACTERS = 253
LABEL_CHARACTERS = 63


def size_of(thing: Any) -> int:
    """Return how many bytes an object is as the API server writes it."""
    return len(encoded(thing))


def encoded(thing: Any) -> str:
    """Return an object as the API server writes it."""
    return json.dumps(thing, separators=(",", ":"))


def padded(text: str, characters: int) -> str:
    """Return a name made longer, so that few of them fill an object as well."""
    return text if len(text) >= characters else f"{text}-{'x' * (characters - len(text) - 1)}"


def label_key(text: str, characters: int = 0) -> str:
    """Return the key of a label; a long one gets a prefix."""
    if characters <= LABEL_CHARACTERS:
        return padded(text, characters)
    prefix = ".".join(["x" * 60] * ((characters - LABEL_CHARACTERS) // 61)) or "example.com"
    return f"{prefix}/{padded(text, LABEL_CHARACTERS)}"


def resource_name(text: str, characters: int = 0) -> str:
    """Return the name of an extended resource."""
    return f"example.com/{padded(text, min(characters, LABEL_CHARACTERS))}"


def expression(key: str, operator: str, *values: str) -> Raw:
    """Return one requirement of a selector."""
    found: Raw = {"key": key, "operator": operator}
    if values:
        found["values"] = list(values)
    return found
