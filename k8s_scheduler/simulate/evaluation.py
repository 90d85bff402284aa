"""Judging the pods of scenarios and sequences with the engine the daemon runs.

One scheduler per scenario or sequence. It is told of the objects by messages, and each pending
pod is judged alone: nothing that is decided for one changes what the next one sees. What is wrong
with a scenario becomes its answer and leaves the others alone; in a sequence, a step whose
cluster holds an object that cannot be read fails, and so do those after it until the object is
replaced or removed.
"""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Listed
from typing import Any

from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.inspection import OverLimitError, PluginError, Tally
from k8s_scheduler.core.setup import ProfileError
from k8s_scheduler.obs.metrics import Metrics
from k8s_scheduler.simulate.answers import Answer, answer, encode, failed
from k8s_scheduler.simulate.cluster import Cluster
from k8s_scheduler.simulate.files import (
    Scenario,
    Sequence,
    display_name,
    read_scenarios,
    read_sequences,
)
from k8s_scheduler.simulate.profiles import ProfileProblemError, profile_in_force


class ScenarioEvaluation:
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
            yield failed(scenario.id, cluster)
            return
        cluster.start(scenario.objects)
        yield from _judged(cluster, scenario.id, scenario.pending)
        self.tally.add(cluster.tally)

    def sequence(self, sequence: Sequence) -> Iterator[Answer]:
        """Yield the answers of each step, under the id `SEQUENCE/STEP`."""
        cluster = self._cluster(sequence.config)
        if isinstance(cluster, str):
            for number in range(len(sequence.steps)):
                yield failed(f"{sequence.id}/{number}", cluster)
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
        yield failed(scenario, cluster.problem)
        return
    missing = [name for name in pending if cluster.pod(name) is None]
    if missing:
        yield failed(
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
            yield failed(scenario, str(error), pod=name)


def evaluate_file(
    path: str,
    evaluation: ScenarioEvaluation,
    *,
    is_sequence: bool,
    write: Callable[[bytes], object],
    complain: Callable[[str], object],
) -> bool:
    """Write an answer for each pending pod; return whether every scenario could be judged.

    A scenario that could not is answered with its error and complained about by file and line;
    the others are judged all the same. Raises InputFileError where a line is no scenario at all.
    """
    well = True
    for number, answers in _answers(path, evaluation, is_sequence=is_sequence):
        reported: set[str] = set()
        for given in answers:
            write(encode(given))
            if given["pod"]:
                continue
            well = False
            problem = given["error"]
            if problem not in reported:
                # A mistake in a sequence concerns every step from there on; once is enough.
                reported.add(problem)
                complain(f"{display_name(path)}:{number}: {given['id']}: {problem}")
    return well


def _answers(
    path: str, evaluation: ScenarioEvaluation, *, is_sequence: bool
) -> Iterator[tuple[int, Iterator[Answer]]]:
    if is_sequence:
        for number, sequence in read_sequences(path):
            yield number, evaluation.sequence(sequence)
    else:
        for number, scenario in read_scenarios(path):
            yield number, evaluation.scenario(scenario)
