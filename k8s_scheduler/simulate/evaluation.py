"""Judging the pods of scenarios and sequences with the engine the daemon runs.

One scheduler per scenario or sequence. It is told of the objects by messages, and each pending
pod is judged alone: nothing that is decided for one changes what the next one sees. What is wrong
with a scenario becomes its answer and leaves the others alone; in a sequence, a step whose
cluster holds an object that cannot be read fails, and so do those after it until the object is
replaced or removed.
"""

from collections.abc import Iterator
from collections.abc import Sequence as Listed
from typing import Any

from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.inspection import OverLimitError, PluginError, Tally
from k8s_scheduler.core.setup import ProfileError
from k8s_scheduler.obs.metrics import Metrics
from k8s_scheduler.simulate.answers import Answer, answer, failed_cycle, failed_scenario
from k8s_scheduler.simulate.cluster import Cluster
from k8s_scheduler.simulate.files import Scenario, Sequence
from k8s_scheduler.simulate.profiles import ProfileProblemError, profile_in_force


class ScenarioEngine:
    """Answers scenarios and sequences, one after the other."""

    def __init__(self, *, keeps_evaluations: bool = True) -> None:
        self._keeps_evaluations = keeps_evaluations
        # How often what was known could be used again, in all that was judged so far.
        self.tally = Tally()
        # They are not read here; a registry for each scheduler would cost more than its decisions.
        self._metrics = Metrics().scheduler

    def scenario(self, scenario: Scenario) -> Iterator[Answer]:
        """Yield an answer for each pending pod, or one for the scenario if it cannot be judged."""
        cluster = self._cluster(scenario.config)
        if isinstance(cluster, str):
            yield failed_scenario(scenario.id, cluster)
            return
        cluster.start(scenario.objects)
        yield from _judged(cluster, scenario.id, scenario.pending)
        self.tally.add(cluster.tally)

    def sequence(self, sequence: Sequence) -> Iterator[Answer]:
        """Yield the answers of each step, under the id `SEQUENCE/STEP`."""
        cluster = self._cluster(sequence.config)
        if isinstance(cluster, str):
            for number in range(len(sequence.steps)):
                yield failed_scenario(f"{sequence.id}/{number}", cluster)
            return
        cluster.start(sequence.objects)
        for number, step in enumerate(sequence.steps):
            for raw in step.apply:
                cluster.apply(raw)
            for removal in step.delete:
                cluster.delete(removal.kind, removal.namespace, removal.name)
            yield from _judged(cluster, f"{sequence.id}/{number}", step.pending)
        self.tally.add(cluster.tally)

    def _cluster(self, config: dict[str, Any] | None) -> Cluster | str:
        """Return an empty cluster, or why there can be none."""
        try:
            return Cluster(
                profile_in_force(config),
                metrics=self._metrics,
                keeps_evaluations=self._keeps_evaluations,
            )
        except (ProfileProblemError, ProfileError) as error:
            return str(error)


def _judged(cluster: Cluster, scenario: str, pending: Listed[str]) -> Iterator[Answer]:
    if cluster.problem:
        yield failed_scenario(scenario, cluster.problem)
        return
    missing = [name for name in pending if cluster.pod(name) is None]
    if missing:
        yield failed_scenario(
            scenario,
            f"pending pod {', '.join(missing)} not among the objects; "
            "pending names pods of the scenario as NAMESPACE/NAME",
        )
        return
    for name in pending:
        pod = cluster.pod(name)
        if pod is None:
            raise KeyError(name)
        try:
            yield answer(scenario, name, cluster.judge(pod))
        except (PluginError, QuantityError, OverLimitError) as error:
            yield failed_cycle(scenario, name, str(error))
