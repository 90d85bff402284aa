"""What a decision costs while others are promised room: none, one, two thousand.

The promised pods are more important than those that are decided on. They are of the same kind as
these (a crowd that makes room for itself: spreading and anti-affinity count each of them), or of
another app, which is no concern of theirs. All take turns in one run, so that ratios hold on any
machine.
"""

from collections.abc import Iterator

from k8s_scheduler.api.meta import NodeName
from tests.bench.core_speed import Course, run
from tests.bench.workloads import make_pod
from tests.inside import inside

WORKLOADS = ("basic", "spread", "anti")
CROWD = 2000
OTHER = "other"
# Fewer than elsewhere: those that are made again from scratch take a tenth of a second each.
PODS = 2000
_IMPORTANT = 10


def promise(course: Course, count: int, app: str | None = None) -> None:
    """Promise room to pods of a course's kind, or of another app, on every other node."""
    for number in range(count):
        name = f"promised-{number}"
        raw = course.workload.pod(number, name, bare=False)
        if app is not None:
            raw["metadata"]["labels"] = {**raw["metadata"]["labels"], "app": app}
        raw["spec"]["priority"] = _IMPORTANT
        node = NodeName(f"node-{2 * number % course.nodes}")
        inside(course._core).cache.nominations.put(make_pod(raw, name), node)


def promised_lines(nodes: int, pods: int = PODS) -> Iterator[str]:
    """Yield the table."""
    yield (
        f"{'promised room':12} {'nodes':>6} {'none':>8} {'one':>8} {'ratio':>6} "
        f"{f'{CROWD} pods':>9} {'ratio':>6} {'one other':>9} {'ratio':>6} "
        f"{f'{CROWD} others':>11} {'ratio':>6} {'scratch':>9}"
    )
    for name in WORKLOADS:
        courses = [Course(name, nodes, pods) for _ in range(5)]
        for course, count, app in zip(
            courses, (0, 1, CROWD, 1, CROWD), (None, None, None, OTHER, OTHER), strict=True
        ):
            promise(course, count, app)
        run(courses)
        found = [course.result() for course in courses]
        plain, one, crowd, other, others = (each["us_per_decision"] for each in found)
        scratch = found[2]["plain_us_per_decision"]
        yield (
            f"{name:13} {nodes:6} {plain:8.1f} {one:8.1f} {one / plain:6.2f} "
            f"{crowd:9.1f} {crowd / plain:6.2f} {other:9.1f} {other / plain:6.2f} "
            f"{others:11.1f} {others / plain:6.2f} {scratch:9.0f}"
        )


if __name__ == "__main__":
    print("\n".join(promised_lines(5000)))  # noqa: T201  it is a table on the terminal
