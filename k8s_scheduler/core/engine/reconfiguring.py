"""Another configuration takes the place of the one in force, between two decisions.

        compiled ─▶ suspended decisions begin anew ─▶ profiles swapped ─▶ queue goes by the new ones
            └─ can't be run: nothing has changed

* A profile that says the same as before stays as it is: its plugins, what is kept of its shapes,
  and where its pods wait. Only pods of other profiles are judged anew.
* A pod that is parked or gated may pass by new rules: it gets another try, after its backoff.
* A pod whose schedulerName nobody serves any more leaves the queue; the shell tells of pods that
  are served from now on.
* A pod on its way goes on by the configuration it set out with, to its end. If that fails, the new
  one decides what becomes of it. Configurations that nobody goes by any more are forgotten.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import Kind, joined
from k8s_scheduler.core.engine.attempts import Attempts
from k8s_scheduler.core.engine.binding.binding_cycle import Departure
from k8s_scheduler.core.engine.in_flight import Flights
from k8s_scheduler.core.engine.limiting import Limiting
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.parked.parked_pods import ParkedPods
from k8s_scheduler.core.engine.shapes.shape_cache import ShapeCache
from k8s_scheduler.core.engine.timed_plugins import TimedProfiles
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.messages.checkpoint import Checkpoint, EarlierEntry
from k8s_scheduler.core.messages.incoming import QueueSettings, Reconfigure
from k8s_scheduler.core.messages.outgoing import Log, Severity
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.protocols import Assuming

Compile = Callable[[Sequence[ResolvedProfile]], dict[str, Profile]]

# Two profiles are the same if they are written down the same way: also after a recording was read.
_written = msgspec.msgpack.Encoder().encode


class Reconfiguring:
    """Swaps the configuration, and knows those that pods on their way still go by."""

    def __init__(
        self,
        resolved: Sequence[ResolvedProfile],
        compile_all: Compile,
        *,
        profiles: dict[str, Profile],
        timed: TimedProfiles,
        meter: Meter,
        cache: Assuming,
        queue: SchedulingQueue,
        flights: Flights,
        departure: Departure,
        attempts: Attempts,
        shapes: ShapeCache,
        limiting: Limiting,
        parked: ParkedPods,
        out: Outbox,
    ) -> None:
        """`profiles` are the ones in force, shared with everybody who looks them up."""
        self.resolved = tuple(resolved)
        self._compile = compile_all
        self._profiles = profiles
        self._timed = timed
        self._meter = meter
        self._cache = cache
        self._queue = queue
        self._flights = flights
        self._departure = departure
        self._attempts = attempts
        self._shapes = shapes
        self._limiting = limiting
        self._parked = parked
        self._out = out
        self._earlier: dict[int, tuple[ResolvedProfile, ...]] = {}

    def take(self, message: Reconfigure) -> None:
        """Go by another configuration; raises ProfileError if it can't be run, nothing changed."""
        compiled = self._compile(message.profiles)
        same = self._same(message.profiles)
        compiled |= {name: self._profiles[name] for name in compiled if name in same}
        self._attempts.questions.take_back()
        self._parked.rewind()
        self._swap(message.profiles, compiled)
        new = [profile for name, profile in compiled.items() if name not in same]
        self._departure.attach(new)
        if len(same) != len(compiled):
            self._shapes.clear()
        left = self._dismiss()
        is_limited = self._limiting.reconfigure(message.pod_limits, message.node_limits)
        self._queue.reconfigure(
            next(iter(compiled.values())).queue_sort.sort_key,
            policy_of(message.queue),
            judged_anew=lambda pod: is_limited or pod.spec.scheduler_name not in same,
            now=message.now,
        )
        self._forget_unused()
        fields: dict[str, str | int] = {
            "generation": self._timed.generation,
            "profiles": ", ".join(compiled),
            "changed": ", ".join(profile.scheduler_name for profile in new),
            "pods": len(self._queue),
            "pods_dismissed": left,
            "pods_under_way": len(self._flights),
        }
        self._out.append(Log(Severity.INFO, "the configuration has changed", fields))

    def _same(self, profiles: Sequence[ResolvedProfile]) -> frozenset[str]:
        """Return the names of the profiles that say what they said before."""
        before = {profile.scheduler_name: _written(profile) for profile in self.resolved}
        return frozenset(
            profile.scheduler_name
            for profile in profiles
            if before.get(profile.scheduler_name) == _written(profile)
        )

    def _swap(self, resolved: Sequence[ResolvedProfile], compiled: Mapping[str, Profile]) -> None:
        self._earlier[self._timed.generation] = self.resolved
        self.resolved = tuple(resolved)
        # In place: everybody looks them up in here.
        self._profiles.clear()
        self._profiles.update(compiled)
        self._timed.begin(compiled)
        self._meter.serve(compiled)

    def _dismiss(self) -> int:
        """Let the pods go that nobody serves any more; return how many."""
        leaving = [q.uid for q in self._queue if not self._timed.serves(q.pod)]
        for uid in leaving:
            self._queue.remove(uid)
            self._cache.end_nomination(uid)
        return len(leaving)

    # What came before

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that the profiles in force read, and those still gone by."""
        self._forget_unused()
        in_use = [self._profiles, *self._timed.earlier().values()]
        return joined(k for profiles in in_use for p in profiles.values() for k in p.kinds)

    def entries(self) -> tuple[EarlierEntry, ...]:
        """Return the configurations that pods on their way go by, as checkpoint data."""
        self._forget_unused()
        return tuple(EarlierEntry(number, found) for number, found in self._earlier.items())

    def restore(self, checkpoint: Checkpoint) -> None:
        """Know what a checkpoint knew of configurations; pods on their way are restored after."""
        self._earlier = {e.generation: e.profiles for e in checkpoint.earlier}
        earlier = {number: self._compile(found) for number, found in self._earlier.items()}
        self._timed.restore(checkpoint.generation, earlier)
        for profiles in earlier.values():
            self._departure.attach(profiles.values())
            self._meter.serve(profiles)

    def _forget_unused(self) -> None:
        used = frozenset(flight.generation for flight in self._flights)
        self._timed.keep(used)
        self._earlier = {n: found for n, found in self._earlier.items() if n in used}


def policy_of(settings: QueueSettings) -> QueuePolicy:
    """Return what the queue goes by."""
    return QueuePolicy(
        BackoffPolicy(
            initial_seconds=settings.initial_backoff_seconds,
            maximum_seconds=settings.maximum_backoff_seconds,
        ),
        parked_limit_seconds=settings.parked_limit_seconds,
        max_attempts=settings.max_attempts,
        renewals_per_second=settings.renewals_per_second,
    )


def settings_of(policy: QueuePolicy) -> QueueSettings:
    """Return what the queue goes by, as data."""
    return QueueSettings(
        initial_backoff_seconds=policy.backoff.initial_seconds,
        maximum_backoff_seconds=policy.backoff.maximum_seconds,
        parked_limit_seconds=policy.parked_limit_seconds,
        max_attempts=policy.max_attempts,
        renewals_per_second=policy.renewals_per_second,
    )
