"""What a node's resources come to, node by node and in numbers of 64 bits as Go has them."""

import math
from collections.abc import Mapping, Sequence


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def divided(dividend: int, divisor: int) -> int:
    """Return the quotient, towards zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def least(requested: int, capacity: int) -> int:
    if requested > capacity:
        return 0
    return divided(wrapped((capacity - requested) * 100), capacity)


def most(requested: int, capacity: int) -> int:
    return divided(wrapped(min(requested, capacity) * 100), capacity)


def ratio(shape: Sequence[tuple[int, int]], requested: int, capacity: int) -> int:
    used = 100 if requested > capacity else divided(wrapped(requested * 100), capacity)
    before = None
    for utilisation, score in shape:
        if used <= utilisation:
            if before is None:
                return score
            return before[1] + divided(
                (score - before[1]) * (used - before[0]), utilisation - before[0]
            )
        before = utilisation, score
    return shape[-1][1]


def fit(
    kind: str,
    shape: Sequence[tuple[int, int]],
    weights: Mapping[str, int],
    requested: Mapping[str, int],
    offered: Mapping[str, int],
) -> int:
    """Return NodeResourcesFit's score; `requested` has everything that counts, the pod included."""
    total = weight_sum = 0
    for name, weight in weights.items():
        if name not in requested or not offered.get(name):
            continue
        if kind == "LeastAllocated":
            score = least(requested[name], offered[name])
        elif kind == "MostAllocated":
            score = most(requested[name], offered[name])
        else:
            score = ratio(shape, requested[name], offered[name])
            if not score:
                continue
        total += score * weight
        weight_sum += weight
    if not weight_sum:
        return 0
    if kind == "RequestedToCapacityRatio":
        return math.floor(total / weight_sum + 0.5)
    return divided(total, weight_sum)


def balanced(requested: Sequence[int], offered: Sequence[int]) -> int:
    """Return how even the shares are, of 100."""
    shares = [min(1.0, float(r) / float(o)) for r, o in zip(requested, offered, strict=True) if o]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = sum(shares) / len(shares)
        squares = 0.0
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return int((1 - deviation) * 100)
