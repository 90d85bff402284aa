"""Bounds of histograms' buckets, made as Prometheus' Go client makes them."""


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the bucket bounds that Prometheus' Go client calls ExponentialBuckets."""
    bounds = []
    bound = start
    for _ in range(count):
        # Multiplied step by step, not by powers: the last digits of a bound are part of its name.
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)
