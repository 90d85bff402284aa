"""What a core was made from, written into the header of a recording and built again from it.

Every field of `Setup` goes both ways by its type, so that one that is added later is not
forgotten: what a decision depends on and a recording does not hold would make a replay lie.
Plugins are code, and come with the version; extenders are named only, because a core that asks
them can't be built without them.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Final, get_type_hints

import msgspec

from k8s_scheduler import __version__
from k8s_scheduler.core.inspection import QueuedPod
from k8s_scheduler.core.messages.recording import Header, RecordingError
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import ProfileError, Setup
from k8s_scheduler.obs.metrics import SchedulerMetrics

# These have a place of their own in the header, or none.
_APART: Final = ("profiles", "queue", "plugins", "extenders")


def header_of(setup: Setup, *, started: float) -> Header:
    """Return the header of a segment that begins now."""
    values = {field.name: getattr(setup, field.name) for field in dataclasses.fields(setup)}
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


def core_of(
    header: Header, *, metrics: SchedulerMetrics, witness: Callable[[QueuedPod], None]
) -> Scheduler:
    """Return a core as the recorded one was when the segment began; raises RecordingError."""
    setup = setup_of(header)
    try:
        return Scheduler(setup, metrics=metrics, witness=witness)
    except ProfileError as error:
        raise RecordingError(f"its profiles can't be run: {error}") from error
    except Exception as error:
        # Arguments of plugins are plain data in here, and are not checked a second time: damaged
        # ones, and those of another version, fail anywhere.
        raise RecordingError(
            f"its profiles can't be run: {type(error).__name__}: {error}; it was written by "
            f"version {header.version}, and this is {__version__}"
        ) from error


def _of_another_version(header: Header, problem: str) -> RecordingError:
    return RecordingError(
        f"{problem}, which version {__version__} does not know; it was written by {header.version}"
    )
