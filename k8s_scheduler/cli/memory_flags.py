"""The flag about the memory of a process that runs on and on."""

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

import click

from k8s_scheduler.app.process.memory import default_limit_bytes
from k8s_scheduler.cli.flags import ByteSize

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_NAME = "memory_limit_bytes"


def memory_options(function: _Decorated) -> _Decorated:
    return click.option(
        "--memory-limit",
        _NAME,
        type=ByteSize(),
        default=None,
        show_default="80% of the cgroup's limit",
        help="Memory below which caches shrink, such as 3Gi; 0 for no limit.",
    )(function)


def take_memory_limit(parameters: MutableMapping[str, Any]) -> int:
    """Return the limit in bytes, and take it out of the parameters."""
    given: int | None = parameters.pop(_NAME)
    return default_limit_bytes() if given is None else given
