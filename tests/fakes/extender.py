"""An extender that has a say about the pods with a label."""

from dataclasses import dataclass

from k8s_scheduler.api.pod import Pod


@dataclass(frozen=True)
class FakeExtender:
    """What the core knows of an extender; whoever tests gives its answers."""

    name: str = "ext"
    filters: bool = True
    prioritizes: bool = True
    weight: int = 1
    ignorable: bool = False
    label: str = "extended"

    def is_interested(self, pod: Pod) -> bool:
        return self.label in (pod.metadata.labels or {})
