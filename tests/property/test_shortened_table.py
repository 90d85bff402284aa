"""Whatever is kept, decided and remembered is right while the table of nodes grows and shrinks.

Histories as elsewhere in this folder, in which pods come to nodes that do not exist and leave, so
that rows are cut off between decisions and others come in their place: evaluations are those from
scratch, dry runs those of a fresh search, a core that is restored from a checkpoint goes on like
the original, nothing is parked in vain. With a mistake planted the same histories have to fail.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.engine.parked import renewals
from k8s_scheduler.core.messages.incoming import PodChanged
from k8s_scheduler.core.queue import waking
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.state.counts.live_counters import Counters
from k8s_scheduler.core.state.news.facts import FactLog
from k8s_scheduler.core.state.nodes.labels import LabelColumns
from tests.builders import make_pod
from tests.inside import inside
from tests.property.haunted import GHOSTS, Haunted, easily_shortened
from tests.property.kept_checks import StaleError
from tests.property.kept_world import run
from tests.property.test_outcomes import Trying
from tests.property.test_reasons import Told
from tests.property.test_waking import WEIGHTS, History

CHUNK = 50
SEEDS = range(4 * CHUNK)


def run_kept(seeds: Iterable[int], **options: Any) -> Counter[str]:
    """Run histories; return how often tables were shortened, and how much was kept."""
    met: Counter[str] = Counter()
    for seed in seeds:
        with easily_shortened():
            history = run(seed, made=Haunted, steps=24, **options)
        met.update(checks=history.checks, kept=history.kept, withheld=history.withheld)
        met.update(shortened=history.shortened, grown=history.grown)
    return met


@pytest.mark.parametrize("first", range(0, SEEDS.stop, CHUNK))
def test_what_is_kept_is_what_would_be_found(first):
    met = run_kept(range(first, first + CHUNK))
    assert met["shortened"] > CHUNK // 2
    assert met["grown"] > CHUNK // 4
    assert met["kept"] > 0.3 * met["checks"]


@pytest.mark.parametrize("has_kin", [False, True], ids=["shapes", "kin"])
def test_promises_are_counted_in(has_kin):
    met = run_kept(range(CHUNK), has_kin=has_kin, has_promises=True)
    assert met["shortened"] > CHUNK // 2
    assert met["withheld"]


# Dry runs


class HauntedTrying(Trying, Haunted):
    """Nodes are tried for pods while the table grows and shrinks."""

    def __init__(self, seed: int, met: Counter[str]) -> None:
        super().__init__(seed, met)
        self.steps = 16


def run_outcomes(seeds: Iterable[int]) -> Counter[str]:
    met: Counter[str] = Counter()
    for seed in seeds:
        try:
            with easily_shortened():
                history = HauntedTrying(seed, met)
                history.run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        met.update(shortened=history.shortened, grown=history.grown)
    return met


def test_remembered_outcomes_are_those_of_a_fresh_search():
    met = run_outcomes(range(80))
    assert met["shortened"] > 20
    assert met["victims"] > 50
    assert met["remembered"] > met["tried"] / 8


# Waking, preemption and checkpoints


class HauntedTold(Told):
    """Pods preempt each other, are woken and told why they wait; a twin begins at a checkpoint."""

    shortened = 0

    def run(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.put_node()
        steps = {**WEIGHTS, **HAUNTING}
        for number in range(1, 41):
            (step,) = self.rng.choices(list(steps), list(steps.values()))
            step(self)
            if number % 4 == 0:
                self.what_pods_were_told_is_true()
                self.nothing_is_parked_in_vain()

    def haunt(self) -> None:
        """Put pods on nodes that do not exist."""
        for number in range(self.rng.randint(4, GHOSTS)):
            pod = make_pod(f"g{number}").uid(f"g{number}").label(app="x").on(f"ghost-{number}")
            self.pods[f"g{number}"] = pod.raw
            self.show(f"g{number}")

    def lay_ghosts(self) -> None:
        """Let them go."""
        for number in range(GHOSTS):
            if self.pods.pop(f"g{number}", None):
                self.tell(PodChanged(self.now, PodUid(f"g{number}"), None))
        self.tick()

    def tell(self, message: Any) -> None:
        before = inside(self.core).cache.nodes.row_count
        super().tell(message)
        nodes = inside(self.core).cache.nodes
        self.shortened += nodes.row_count < before
        if self.twin is not None:
            assert self.twin._cache.nodes.row_count == nodes.row_count


HAUNTING: dict[Any, float] = {
    HauntedTold.haunt: 4,
    HauntedTold.lay_ghosts: 5,
    Told.answer_requests: 4,
    History.branch_off_a_twin: 1.5,
}


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_parked_pods_are_woken_and_a_restored_core_goes_on(first, monkeypatch):
    monkeypatch.setattr(waking, "WORK_PER_STEP", 100 * (1 + first // 40 % 3))
    monkeypatch.setattr(renewals, "WORK_PER_STEP", 1 + first // 40 % 3)
    monkeypatch.setattr(renewals, "POD_SECONDS", 0.0)
    shortened = 0
    for seed in range(first, first + 40):
        try:
            with easily_shortened():
                history = HauntedTold(seed, volumes=False)
                history.run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shortened += history.shortened
    assert shortened > 40


# Mistakes


def nothing(*_: Any) -> None:
    """Do nothing."""


def nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut rows off, and let everything that is kept by row go on."""
    monkeypatch.setattr(Scheduler, "_shorten", lambda self: self._cache.nodes.shorten())


def facts_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let evaluations and dry runs go on, and follow the same log."""
    monkeypatch.setattr(Scheduler, "_shorten", lambda self: self._cache.shorten())
    monkeypatch.setattr(FactLog, "forget", nothing)


def counts_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counters, "drop_all", nothing)


def cells_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at columns that may have been replaced."""
    monkeypatch.setattr(LabelColumns, "forget_cells", nothing)


@pytest.mark.parametrize(
    ("plant", "first"),
    [(nobody_is_told, 0), (facts_go_on, 0), (counts_go_on, 27), (cells_go_on, 136)],
)
def test_a_planted_mistake_is_found(plant: Callable[[Any], None], first, monkeypatch):
    """Where it was found once is only where the hunt begins: histories may change."""
    plant(monkeypatch)
    # Rows that were cut off may also be found not to be there, or not to fit together.
    with pytest.raises((StaleError, ValueError, IndexError, KeyError)):
        run_kept([*range(first, SEEDS.stop), *range(first)])


@pytest.mark.parametrize("plant", [nobody_is_told, facts_go_on])
def test_a_mistake_planted_among_dry_runs_is_found(plant: Callable[[Any], None], monkeypatch):
    plant(monkeypatch)
    with pytest.raises((StaleError, ValueError, IndexError)):
        run_outcomes(range(240))
