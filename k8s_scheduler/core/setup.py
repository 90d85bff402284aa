"""What a core is made from: profiles, plugins, limits, and how the queue behaves.

It is written into the header of a recording and read from it again. Every field of `Setup` goes
both ways by its type, so that one that is added later is not forgotten: what a decision depends on
and a recording does not hold would make a replay lie. Plugins are code, and come with the version;
extenders are named only, because a core that asks them can't be built without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, get_type_hints

import msgspec

from k8s_scheduler import __version__
from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.engine.shapes.shape_cache import DEFAULT_BYTES
from k8s_scheduler.core.framework.extenders import ConfiguredExtender
from k8s_scheduler.core.framework.profile import Profile, compile_profiles
from k8s_scheduler.core.framework.registry import ProfileError, Registration
from k8s_scheduler.core.messages.recording import Header, RecordingError
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy

__all__ = [
    "DEFAULT_BYTES",
    "BackoffPolicy",
    "ProfileError",
    "QueuePolicy",
    "Setup",
    "header_of",
    "known_plugins",
    "settings_of",
    "setup_of",
]

LIBRARY_MAX_ATTEMPTS = 8
LIBRARY_RENEWALS_PER_SECOND = 20
# These have a place of their own in the header, or none.
_APART: Final = ("profiles", "queue", "plugins", "extenders")


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


def header_of(setup: Setup, *, started: float) -> Header:
    """Return the header of a segment that begins now."""
    values = {field.name: getattr(setup, field.name) for field in fields(setup)}
    return Header(
        version=__version__,
        started=started,
        profiles=msgspec.to_builtins(setup.profiles),
        queue=msgspec.to_builtins(setup.queue),
        rest=msgspec.to_builtins({k: v for k, v in values.items() if k not in _APART}),
        extenders=tuple(extender.name for extender in setup.extenders),
    )


def setup_of(header: Header) -> Setup:
    """Return what the recorded core was made from; raises RecordingError."""
    if header.extenders:
        raise RecordingError(
            f"it was made with extenders ({', '.join(header.extenders)}), and their part in "
            "decisions can't be replayed"
        )
    kinds = get_type_hints(Setup)
    unknown = sorted(set(header.rest) - set(kinds))
    if unknown:
        raise _of_another_version(header, f"it was made with {', '.join(unknown)}")
    given: dict[str, Any] = {"profiles": header.profiles, "queue": header.queue, **header.rest}
    try:
        setup = Setup(**{name: msgspec.convert(v, kinds[name]) for name, v in given.items()})
    except msgspec.ValidationError as error:
        raise _of_another_version(header, f"its header can't be read: {error}") from error
    missing = sorted(
        {use.name for p in setup.profiles for uses in p.points.values() for use in uses}
        - set(setup.plugins)
    )
    if missing:
        raise _of_another_version(header, f"it was made with the plugins {', '.join(missing)}")
    return setup


def _of_another_version(header: Header, problem: str) -> RecordingError:
    return RecordingError(
        f"{problem}, which version {__version__} does not know; it was written by {header.version}"
    )
