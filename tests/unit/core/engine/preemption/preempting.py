"""A node that is full, and pods that need its room."""

from k8s_scheduler.core.messages.outgoing import Evict
from tests.builders import make_pod
from tests.unit.core.harness import only

# How the answer about a victim reads that was gone already.
GONE = "NotFound"


def fill(bench, **priorities):
    """Put pods of these priorities on n1; they share its room."""
    cpu = str(4 // len(priorities))
    for name, priority in priorities.items():
        bench.pod(victim(name, priority, cpu).obj())


def victim(name, priority, cpu="2"):
    return make_pod(name).request(cpu=cpu).priority(priority).on("n1")


def preemptor(name="p", priority=10, cpu="4"):
    return make_pod(name).request(cpu=cpu).priority(priority)


def show_leaving(bench, name, priority=1, cpu="4"):
    """Let the watch show that a victim is on its way out."""
    bench.pod(victim(name, priority, cpu).deleting().obj())


def preempt(bench, *, name="p", **parts):
    """Let a pod come that fits nowhere; return who is to leave first."""
    bench.pod(preemptor(name, **parts).obj())
    bench.settle()
    return only(Evict, bench.out)
