"""A part of an object that can be large: how one more item of it looks, and where items go.

A part is asked for items by number, all of them different. How many there are is decided
elsewhere, by bytes or by a limit of the configuration.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fuzz.at_limits.api_rules import (
    LABEL_CHARACTERS,
    MAX_ANNOTATION_BYTES,
    Raw,
    label_key,
    padded,
)

Add = Callable[[Raw, "Words", int], None]


@dataclass(frozen=True, slots=True)
class Words:
    """Names for one object: `salt` tells them from those of other objects."""

    salt: str
    characters: int = 0
    rng: random.Random = field(default_factory=random.Random)

    def of(self, part: str) -> "Words":
        """Return words with the same chance as ever for a part."""
        return Words(self.salt, self.characters, random.Random(f"{self.salt} {part}"))

    def name(self, text: str, number: int) -> str:
        """Return a name that no other item has."""
        return padded(f"{text}{self.salt}-{number}", min(self.characters, LABEL_CHARACTERS))

    def key(self, text: str, number: int) -> str:
        """Return the key of a label that no other item has."""
        return label_key(f"{text}{self.salt}-{number}", self.characters)


@dataclass(frozen=True, slots=True)
class Part:
    """`add` puts that many items into an object that is right otherwise.

    `most` is what the API allows beside the size of the object, `limit` the field of podLimits
    or nodeLimits that counts the items.
    """

    name: str
    add: Add
    most: int = 100_000
    limit: str = ""


def labels(thing: Raw, words: Words, count: int) -> None:
    """Add labels."""
    found = thing["metadata"].setdefault("labels", {})
    found.update({words.key("l", i): words.name("v", i % 50) for i in range(count)})


def annotations(thing: Raw, words: Words, count: int) -> None:
    """Add annotations, as many as there may be."""
    found = thing["metadata"].setdefault("annotations", {})
    room = MAX_ANNOTATION_BYTES - 1024
    for i in range(count):
        key, value = words.key("a", i), words.name("v", i)
        room -= len(key) + len(value)
        if room < 0:
            return
        found[key] = value


def owners(thing: Raw, words: Words, count: int) -> None:
    """Add owners, one of them the controller."""
    thing["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": words.rng.choice(("ReplicaSet", "StatefulSet", "Widget")),
            "name": words.name("o", i),
            "uid": words.name("u", i),
            "controller": i == 0,
        }
        for i in range(count)
    ]


METADATA = (
    Part("labels", labels, limit="labels"),
    Part("annotations", annotations),
    Part("owners", owners),
)
