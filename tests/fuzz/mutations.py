"""Small accidents that happen to plain values: a tree of dicts, lists and scalars gets worse."""

import copy
import itertools
import random
from collections.abc import Iterator
from typing import Any

Tree = Any

ODD_NUMBERS = (
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    2**64,
    2**70,
    10**400,
    0.5,
    -0.0,
    1e308,
    1e-320,
)
ODD_TEXTS = (
    "",
    " ",
    "*",
    "-",
    "null",
    "true",
    "0",
    "-1",
    "1e9",
    "99999999999999999999",
    "15s",
    "-15s",
    "1h1h",
    "9" * 5000,
    "a" * 70_000,
    "é",
    "\uff11\uff12",
    "\u202egpj",
    "\U0001f600",
    "\x00",
    "\ufeff",
    "a\nb: c",
    "../../etc/passwd",
    "kubernetes.io/hostname",
    "${HOME}",
    "%s%n",
)
_DEEP = 100
_LARGE = 20_000
_REPEATED = 5_000
WRONG = (None, True, False, [], {}, [None], [[]], {"": None}, {"name": []})


def odd_scalar(rng: random.Random) -> Any:
    """Return a value that few expect."""
    return rng.choice((*ODD_NUMBERS, *ODD_TEXTS, *WRONG))


def paths(tree: Tree) -> list[tuple[Any, ...]]:
    """Return the places in a tree but the root, and but for what is very deep; not endlessly many.

    What repeats itself is the same object in many places: walking all of them would take the
    memory that the repetition itself does not.
    """
    return list(itertools.islice(_walk(tree, ()), _LARGE))


def _walk(tree: Tree, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if len(path) > _DEEP:
        return
    inner = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in inner:
        yield (*path, key)
        yield from _walk(value, (*path, key))


def mutated(tree: Tree, rng: random.Random, *, times: int) -> Tree:
    """Return a copy that so many accidents have happened to."""
    tree = copy.deepcopy(tree)
    for _ in range(times):
        places = paths(tree)
        if not 0 < len(places) < _LARGE:
            # Repetitions of repetitions would fill the memory of whoever makes them.
            return tree
        path = rng.choice(places)
        holder = tree
        for part in path[:-1]:
            holder = holder[part]
        rng.choice(_ACCIDENTS)(holder, path[-1], rng)
    return tree


def deep(rng: random.Random, depth: int) -> Any:
    """Return something in something in something."""
    value: Any = odd_scalar(rng)
    for _ in range(depth):
        value = [value] if rng.random() < 0.5 else {"args": value}
    return value


def _replace(holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = odd_scalar(rng)


def _remove(holder: Any, key: Any, _rng: random.Random) -> None:
    del holder[key]


def _nullify(holder: Any, key: Any, _rng: random.Random) -> None:
    holder[key] = None


def _misspell(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(key, str) and key:
        at = rng.randrange(len(key))
        worse = key[:at] + rng.choice(("", "x", key[at].upper(), key[at] * 2)) + key[at + 1 :]
        holder[worse] = holder.pop(key)
    else:
        _repeat(holder, key, rng)


def _repeat(holder: Any, key: Any, rng: random.Random) -> None:
    value = holder[key]
    most = 1 + _REPEATED // (1 + len(paths(value)))
    if isinstance(holder, list):
        holder.extend([copy.deepcopy(value)] * min(most, rng.choice((1, 1, 2, 100))))
    elif isinstance(value, list) and value:
        value.extend(copy.deepcopy(value[:2]) * min(most, rng.choice((1, 50))))
    else:
        holder[f"{key}{rng.choice(('', 's', ' ', '2'))}"] = copy.deepcopy(value)


def _wrap(holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = rng.choice(([holder[key]], {"name": holder[key]}))


def _unwrap(holder: Any, key: Any, _rng: random.Random) -> None:
    value = holder[key]
    if isinstance(value, list) and value:
        holder[key] = value[0]
    elif isinstance(value, dict) and value:
        holder[key] = next(iter(value.values()))
    else:
        holder[key] = str(value)


def _deepen(holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = deep(rng, rng.choice((3, 40, 70, 120)))


def _exchange(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, dict) and len(holder) > 1:
        other = rng.choice(sorted(holder, key=str))
        holder[key], holder[other] = holder[other], holder[key]


_ACCIDENTS = (
    _replace,
    _replace,
    _replace,
    _remove,
    _nullify,
    _misspell,
    _repeat,
    _wrap,
    _unwrap,
    _deepen,
    _exchange,
)
