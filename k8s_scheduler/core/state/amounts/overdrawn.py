"""A resource of a node of which pods take more than there is."""

from dataclasses import dataclass

from k8s_scheduler.api.resources import CPU


@dataclass(frozen=True, slots=True)
class Overdrawn:
    """One resource, in its own unit: thousandths of a cpu, bytes, pieces."""

    resource: str
    requested: int
    allocatable: int

    def __str__(self) -> str:
        unit = "m" if self.resource == CPU else ""
        return f"{self.resource} {self.requested}{unit} of {self.allocatable}{unit}"
