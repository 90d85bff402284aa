"""What a core is made from: profiles, plugins, limits, and how the queue behaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.engine.shapes.shape_cache import DEFAULT_BYTES
from k8s_scheduler.core.framework.extenders import ConfiguredExtender
from k8s_scheduler.core.framework.profile import Profile, compile_profiles
from k8s_scheduler.core.framework.registry import ProfileError, Registration
from k8s_scheduler.core.queue.backoff import BackoffPolicy
from k8s_scheduler.core.queue.policy import QueuePolicy

__all__ = [
    "DEFAULT_BYTES",
    "BackoffPolicy",
    "ProfileError",
    "QueuePolicy",
    "Setup",
    "known_plugins",
    "settings_of",
]

LIBRARY_MAX_ATTEMPTS = 8
LIBRARY_RENEWALS_PER_SECOND = 20


@dataclass(frozen=True, slots=True)
class Setup:
    """What a core is made from."""

    profiles: tuple[ResolvedProfile, ...]
    # Without a daemon there is no operator to see a pod that fails for ever.
    queue: QueuePolicy = field(
        default_factory=lambda: QueuePolicy(
            BackoffPolicy(),
            max_attempts=LIBRARY_MAX_ATTEMPTS,
            renewals_per_second=LIBRARY_RENEWALS_PER_SECOND,
        )
    )
    plugins: Mapping[str, Registration] = field(default_factory=lambda: BUILT_INS)
    extenders: tuple[ConfiguredExtender, ...] = ()
    # Whether evaluations are kept and caught up, or every pod is judged from scratch; and the
    # share of decisions that are made again from scratch, to see whether what is kept is right.
    keeps_evaluations: bool = True
    verified_share: float = 0.0
    # What one object may ask for, or counts with.
    pod_limits: PodLimits = field(default_factory=PodLimits)
    node_limits: NodeLimits = field(default_factory=NodeLimits)
    # How many pods may be evicted for others in a minute; 0 is no limit.
    max_victims_per_minute: int = 0

    def compiled(self) -> dict[str, Profile]:
        """Return the profiles by name, ready to run; raises ProfileError if one can't be."""
        return compile_profiles(self.profiles, self.plugins)
