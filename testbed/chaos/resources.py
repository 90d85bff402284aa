"""Quantities, written down once more: the auditor does not trust the scheduler's own arithmetic."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_FACTORS = {
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
}


def amount(text: str) -> Fraction:
    """Read a quantity of the kinds that the bed uses; ValueError for others."""
    digits = text.rstrip("mkMGTi")
    unit = text[len(digits) :]
    if unit not in _FACTORS:
        raise ValueError(f"{text!r}: a quantity with a unit that the auditor does not know")
    return Fraction(digits) * _FACTORS[unit]


@dataclass(frozen=True, slots=True)
class Room:
    """What a pod takes or a node has."""

    milli_cpu: int = 0
    memory_bytes: int = 0
    pods: int = 0

    @classmethod
    def of(cls, resources: Mapping[str, str], *, pods: int | None = None) -> "Room":
        """Read what the API calls requests or allocatable."""
        return cls(
            milli_cpu=int(amount(resources.get("cpu", "0")) * 1000),
            memory_bytes=int(amount(resources.get("memory", "0"))),
            pods=int(amount(resources.get("pods", "0"))) if pods is None else pods,
        )

    def __add__(self, other: "Room") -> "Room":
        return Room(
            self.milli_cpu + other.milli_cpu,
            self.memory_bytes + other.memory_bytes,
            self.pods + other.pods,
        )

    def holds(self, load: "Room") -> bool:
        """Whether so much fits in here."""
        return (
            load.milli_cpu <= self.milli_cpu
            and load.memory_bytes <= self.memory_bytes
            and load.pods <= self.pods
        )

    def __str__(self) -> str:
        memory = self.memory_bytes / 2**20
        return f"{self.milli_cpu}m CPU, {memory:.0f} MiB, {self.pods} pods"


NOTHING = Room()
