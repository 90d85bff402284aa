"""What loading and starting make of a text, beside what was promised.

Promise: loading gives a configuration from which a core can be built, or a ConfigurationError
whose every error has a message and the name of the file, in one line that can be written down;
never anything else, and soon. A daemon starts with the same. Where loading refuses the text it
starts with the last good one, if our own document says where that is, or else says everything that
is wrong.
"""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from k8s_scheduler.api.config.documents import kept_in
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.load import load_configuration
from k8s_scheduler.api.config.summary import summary
from k8s_scheduler.api.config_maps import ConfigMap, ConfigMapName
from k8s_scheduler.app.configuration.initial import Start, StartError, load_start, place_to_keep
from k8s_scheduler.app.options import ConfigurationFlags
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.obs.metrics import Metrics

CPU_LIMIT_SECONDS = 1.0
# Who starts with a bad file reads it once more, to find our own document in it.
START_CPU_LIMIT_SECONDS = 2.0
KNOWN = known_plugins()
METRICS = Metrics().scheduler
_LAST_GOOD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one text; `problem` is empty if that is as promised."""

    loaded: bool
    cpu_seconds: float
    problem: str = ""
    # Refused, and yet there was something to start with.
    started_with_last_good: bool = False


class BrokenPromiseError(Exception):
    """What came of a text is not what was promised; says what."""


def tried(text: str | bytes, path: Path) -> Outcome:
    """Load a text and build its core, then start with it as the daemon would."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    path.write_bytes(data)
    loaded, problem, loading_seconds = _watched(lambda: _load(path))
    started, other_problem, starting_seconds = _watched(lambda: _start(path, loaded=bool(loaded)))
    problem = problem or other_problem
    if not problem and loading_seconds > CPU_LIMIT_SECONDS:
        problem = f"loading takes {loading_seconds:.2f} s of CPU"
    if not problem and starting_seconds > START_CPU_LIMIT_SECONDS:
        problem = f"starting takes {starting_seconds:.2f} s of CPU"
    return Outcome(bool(loaded), loading_seconds, problem, bool(started) and not loaded)


def _watched(deed: Callable[[], bool]) -> tuple[bool | None, str, float]:
    """Return what came of a deed, None if it raised; why; and the CPU it took."""
    began = time.thread_time()
    came, problem = None, ""
    try:
        came = deed()
    except BrokenPromiseError as error:
        problem = str(error)
    except Exception:  # noqa: BLE001  whatever it is, it is what is looked for
        problem = traceback.format_exc(limit=-6)
    return came, problem, time.thread_time() - began


def _load(path: Path) -> bool:
    """Return whether the text is a configuration."""
    try:
        configuration = load_configuration(path, KNOWN)
    except ConfigurationError as error:
        if not error.errors:
            raise BrokenPromiseError("an error that says nothing") from error
        if not all(e.message and e.file for e in error.errors):
            raise BrokenPromiseError(f"an error without a message or a file: {error}") from error
        if len(str(error).encode().splitlines()) != len(error.errors):
            raise BrokenPromiseError(f"not one line for each error: {error}") from error
        return False
    Scheduler(Setup(profiles=configuration.profiles), metrics=METRICS)
    summary(configuration).encode()
    return True


def _start(path: Path, *, loaded: bool) -> bool:
    """Return whether there is something to start with."""
    flags = ConfigurationFlags(config_file=path, pod_namespace="fuzz")
    try:
        start = load_start(flags, read=_kept)
    except StartError as error:
        if loaded:
            raise BrokenPromiseError(f"loads, and can't be started with: {error}") from error
        if not str(error):
            raise BrokenPromiseError("nothing to start with, and nobody says why") from error
        return False
    if loaded != (start.refused is None):
        raise BrokenPromiseError(f"loaded: {loaded}, and refused at the start: {start.refused}")
    if loaded:
        _look_at_extras(start, flags)
    return True


def _kept(_wanted: ConfigMapName) -> ConfigMap:
    return ConfigMap(data={"config.yaml": _LAST_GOOD})


def _look_at_extras(start: Start, flags: ConfigurationFlags) -> None:
    """What stands in a right file is found as well once the document beside it is wrong."""
    place_to_keep(flags, start.configuration)
    alone, together = kept_in(start.text or ""), start.configuration.extras.last_good.config_map
    if alone != together:
        raise BrokenPromiseError(f"{together!r} is where it is kept, and read alone {alone!r}")
