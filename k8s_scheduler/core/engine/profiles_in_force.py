"""The profiles in force, and those that pods in flight still go by.

Configurations are numbered. A pod in flight keeps the one in which its binding cycle began;
it is forgotten once no pod goes by it any more. In a tenth of the attempts the plugins are timed
(`metering.plugin_timing`): these run with a copy of their profile.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import Kind, joined
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.metering.plugin_timing import Stopwatch, is_sampled, timed
from k8s_scheduler.core.engine.pods.in_flight import InFlightPod, InFlightPods
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.seeds import seed_of
from k8s_scheduler.core.messages.checkpoint import EarlierEntry
from k8s_scheduler.core.queue.queued_pod import QueuedPod

Compile = Callable[[Sequence[ResolvedProfile]], dict[str, Profile]]

# Two profiles are the same if they are written down the same way: also after a recording was read.
_written = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Generation:
    """The profiles of one configuration; timed ones are made when they are first needed."""

    resolved: tuple[ResolvedProfile, ...]
    plain: Mapping[str, Profile]
    timed: dict[str, Profile] = field(default_factory=dict)


class ProfilesInForce(Mapping[str, Profile]):
    """As a mapping: the profiles in force by name."""

    def __init__(
        self,
        resolved: Sequence[ResolvedProfile],
        compile_all: Compile,
        *,
        in_flight: InFlightPods,
        stopwatch: Stopwatch,
    ) -> None:
        """Raises ProfileError if a profile can't be run."""
        self._compile = compile_all
        self._in_flight = in_flight
        self._stopwatch = stopwatch
        self.generation = 0
        self._current = _Generation(tuple(resolved), compile_all(resolved))
        self._earlier: dict[int, _Generation] = {}

    def __getitem__(self, name: str) -> Profile:
        return self._current.plain[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._current.plain)

    def __len__(self) -> int:
        return len(self._current.plain)

    @property
    def resolved(self) -> tuple[ResolvedProfile, ...]:
        return self._current.resolved

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that these profiles read, and those that are still gone by."""
        self._forget_unused()
        in_use = (self._current, *self._earlier.values())
        return joined(k for each in in_use for p in each.plain.values() for k in p.kinds)

    def serves(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._current.plain

    # For one attempt

    def of(self, queued: QueuedPod) -> Profile:
        return self._of(self._current, queued.pod, queued.seed)

    def of_pod(self, pod: Pod) -> Profile:
        return self._of(self._current, pod, seed_of(pod, attempt=0))

    def of_flight(self, flight: InFlightPod) -> Profile:
        if flight.profile is None:
            is_current = flight.generation == self.generation
            found = self._current if is_current else self._earlier[flight.generation]
            flight.profile = self._of(found, flight.pod, flight.queued.seed)
        return flight.profile

    def _of(self, generation: _Generation, pod: Pod, seed: int) -> Profile:
        name = pod.spec.scheduler_name
        if not is_sampled(seed):
            return generation.plain[name]
        found = generation.timed.get(name)
        if found is None:
            found = generation.timed[name] = timed(generation.plain[name], self._stopwatch)
        return found

    # Other configurations

    def change(self, resolved: Sequence[ResolvedProfile]) -> list[Profile]:
        """Go by another configuration; return the profiles that are new.

        A profile that says what it said before stays as it is. Raises ProfileError if one can't be
        run; nothing has changed then.
        """
        before = {profile.scheduler_name: _written(profile) for profile in self.resolved}
        same = {p.scheduler_name for p in resolved if before.get(p.scheduler_name) == _written(p)}
        compiled = self._compile(resolved)
        new = [profile for name, profile in compiled.items() if name not in same]
        compiled |= {name: self[name] for name in compiled if name in same}
        self._earlier[self.generation] = self._current
        self.generation += 1
        self._current = _Generation(tuple(resolved), compiled)
        return new

    def _forget_unused(self) -> None:
        """Forget the configurations that no pod goes by any more."""
        used = {flight.generation for flight in self._in_flight}
        self._earlier = {n: each for n, each in self._earlier.items() if n in used}

    # Checkpoints

    def entries(self) -> tuple[EarlierEntry, ...]:
        self._forget_unused()
        return tuple(EarlierEntry(n, each.resolved) for n, each in self._earlier.items())

    def restore(self, generation: int, earlier: Iterable[EarlierEntry]) -> list[Profile]:
        """Be where a checkpoint was; return the profiles of earlier configurations."""
        self.generation = generation
        self._earlier = {
            e.generation: _Generation(e.profiles, self._compile(e.profiles)) for e in earlier
        }
        return [p for each in self._earlier.values() for p in each.plain.values()]
