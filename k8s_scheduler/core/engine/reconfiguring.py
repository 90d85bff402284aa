"""Another configuration takes the place of the one in force, between two decisions.

        compiled ─▶ suspended decisions begin anew ─▶ profiles swapped ─▶ queue goes by the new ones
            └─ can't be run: nothing has changed

* A profile that says the same as before stays as it is: its plugins, what is kept of its shapes,
  and where its pods wait. Only pods of other profiles are judged anew.
* A pod that is parked or gated may pass by new rules: it gets another try, after its backoff.
* A pod whose schedulerName no profile serves any more leaves the queue; the shell tells of pods
  that are served from now on.
* A pod in flight goes on by the configuration it was decided by, to its end. If that fails, the new
  one decides what becomes of it. Configurations that no pod goes by any more are forgotten.
"""

from k8s_scheduler.core.engine.binding.binding_cycle import BindingCycle
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.parked.parked_pods import ParkedPods
from k8s_scheduler.core.engine.shapes.shape_cache import ShapeCache
from k8s_scheduler.core.messages.checkpoint import Checkpoint
from k8s_scheduler.core.messages.incoming import QueueSettings, Reconfigure
from k8s_scheduler.core.messages.outgoing import Log, Severity
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy


class Reconfiguring:
    """Swaps the configuration."""

    def __init__(
        self,
        state: CoreState,
        binding_cycle: BindingCycle,
        *,
        shapes: ShapeCache,
        parked: ParkedPods,
    ) -> None:
        self._state = state
        self._binding_cycle = binding_cycle
        self._shapes = shapes
        self._parked = parked

    def take(self, message: Reconfigure) -> None:
        """Go by another configuration; raises ProfileError if it can't be run, nothing changed."""
        state, profiles = self._state, self._state.profiles
        new = profiles.change(message.profiles)
        changed = [profile.scheduler_name for profile in new]
        state.suspensions.take_back()
        self._parked.rewind()
        state.meter.serve(profiles)
        self._binding_cycle.attach(new)
        if new:
            self._shapes.clear()
        left = self._dismiss()
        is_limited = state.limiting.reconfigure(message.pod_limits, message.node_limits)
        state.queue.reconfigure(
            next(iter(profiles.values())).queue_sort.sort_key,
            policy_of(message.queue),
            judged_anew=lambda pod: is_limited or pod.spec.scheduler_name in changed,
            now=message.now,
        )
        fields: dict[str, str | int] = {
            "generation": profiles.generation,
            "profiles": ", ".join(profiles),
            "changed": ", ".join(changed),
            "pods": len(state.queue),
            "pods_dismissed": left,
            "pods_under_way": len(state.in_flight),
        }
        state.out.append(Log(Severity.INFO, "the configuration has changed", fields))

    def _dismiss(self) -> int:
        state = self._state
        leaving = [q.uid for q in state.queue if not state.profiles.serves(q.pod)]
        for uid in leaving:
            state.queue.remove(uid)
            state.cache.end_nomination(uid)
        return len(leaving)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Know what a checkpoint knew of configurations; pods in flight are restored after."""
        profiles = self._state.profiles.restore(checkpoint.generation, checkpoint.earlier)
        self._binding_cycle.attach(profiles)
        self._state.meter.serve(profile.scheduler_name for profile in profiles)


def policy_of(settings: QueueSettings) -> QueuePolicy:
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
    return QueueSettings(
        initial_backoff_seconds=policy.backoff.initial_seconds,
        maximum_backoff_seconds=policy.backoff.maximum_seconds,
        parked_limit_seconds=policy.parked_limit_seconds,
        max_attempts=policy.max_attempts,
        renewals_per_second=policy.renewals_per_second,
    )
