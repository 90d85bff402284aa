"""Puts pods into quarantine that were being tried when a process ended, and says so.

Which pods these are is found by the shell (`app.driver.marks`) in what the last leader left
behind. One that ended a single process is tried as soon as nothing else can be; one that ended
several has to wait before, ever longer: it costs all others a take-over each time.
"""

from typing import Final

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.telling import warn
from k8s_scheduler.core.messages.incoming import Quarantine
from k8s_scheduler.core.messages.outgoing import Log, Severity
from k8s_scheduler.core.queue.queued_pod import QueuedPod

REASON: Final = "Quarantined"
# The wait before a pod is tried that has ended two processes; twice as long for each one more.
_FIRST_WAIT_SECONDS: Final = 60.0
_LONGEST_WAIT_SECONDS: Final = 3600.0


def wait_seconds(deaths: int) -> float:
    if deaths <= 1:
        return 0.0
    # Beyond this many the longest wait is reached by far.
    doubled = 2.0 ** min(deaths - 2, 10)
    return min(_FIRST_WAIT_SECONDS * doubled, _LONGEST_WAIT_SECONDS)


def begin(message: Quarantine, *, state: CoreState) -> None:
    """Put pods into quarantine and tell of it; those that do not wait any more are left alone."""
    for uid, deaths in message.deaths.items():
        seconds = wait_seconds(deaths)
        queued = state.queue.isolate(uid, deaths=deaths, not_before=message.now + seconds)
        if queued is not None:
            _tell(state.out, queued, deaths=deaths, seconds=seconds)


def _tell(out: Outbox, queued: QueuedPod, *, deaths: int, seconds: float) -> None:
    times = "once" if deaths == 1 else f"{deaths} times"
    wait = f", not before {seconds:.0f} s from now" if seconds else ""
    note = (
        f"a scheduler process ended {times} while it tried this pod; it is tried when no "
        f"other pod can be, and alone{wait}"
    )
    out.append(warn(queued.pod, attempt=queued.attempts, note=note, reason=REASON))
    fields: dict[str, str | int] = {
        "pod": key_of(queued.pod.metadata),
        "deaths": deaths,
        "wait_seconds": int(seconds),
    }
    text = "a process ended while it tried this pod, it is tried last"
    out.append(Log(Severity.WARNING, text, fields))
