"""Flag values as kube-scheduler's command line takes them, so that its manifests work here.

Booleans may come with or without a value (`--leader-elect`, `--leader-elect=false`), durations
are Go's (`15s`, `5m0s`), and `-v=4` is as good as `-v 4`.
"""

import ipaddress
import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.api.durations import parse_duration
from k8s_scheduler.api.names import is_namespace, is_subdomain
from k8s_scheduler.api.quantity import QuantityError, nano, whole

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_LEAST_BYTES: Final = 64 * 1024 * 1024
_LEVELS: Final = {str(level): level for level in range(11)}
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


class GoBool(click.ParamType[bool]):
    """A boolean as Go's strconv reads it."""

    name = "bool"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if value not in _TRUE and value not in _FALSE:
            self.fail(f'"{value}" is neither true nor false', param, ctx)
        return value in _TRUE


class GoDuration(click.ParamType[float]):
    """A duration in Go's notation, as seconds; 0 may stand for "never"."""

    name = "duration"

    def __init__(self, *, may_be_negative: bool = True, least_or_never_seconds: int = 0) -> None:
        self._may_be_negative = may_be_negative
        self._least_seconds = least_or_never_seconds

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < 0 and not self._may_be_negative:
            self.fail(f'"{value}" is negative', param, ctx)
        if 0 < seconds < self._least_seconds:
            least = f"{self._least_seconds}s"
            self.fail(f'"{value}" is too short: give {least} or more, or 0 for never', param, ctx)
        return seconds


class ByteSize(click.ParamType[int]):
    """A number of bytes as a Kubernetes quantity; what is too small to run in is a mistake."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            size = whole(nano(value))
        except QuantityError as error:
            self.fail(str(error), param, ctx)
        if size != 0 and size < _LEAST_BYTES:
            self.fail(f'"{value}" is too small: give 64Mi or more, or 0 for no limit', param, ctx)
        return size


class Share(click.FloatRange):
    """A share, 0 to 1; not "nan", which click finds within all bounds."""

    name = "share"

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        share = float(super().convert(value, param, ctx))
        if math.isnan(share):
            self.fail(f'"{value}" is not a number from 0 to 1', param, ctx)
        return share


class Verbosity(click.ParamType[int]):
    """0 to 10; a leading "=" is what `-v=4` leaves behind."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).removeprefix("=")
        if text not in _LEVELS:
            self.fail(f'"{text}" is not a level from 0 to 10', param, ctx)
        return _LEVELS[text]


class IpAddress(click.ParamType[str]):
    """An address to listen on."""

    name = "ip"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(ipaddress.ip_address(value))
        except ValueError:
            self.fail(f'"{value}" is not an IP address', param, ctx)


class ObjectName(click.ParamType[str]):
    """A name that the API server takes for an object."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not is_subdomain(value):
            self.fail(f'"{value}" cannot be a name in Kubernetes', param, ctx)
        return str(value)


class NamespaceName(click.ParamType[str]):
    """A name that the API server takes for a namespace."""

    name = "namespace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not is_namespace(value):
            self.fail(f'"{value}" cannot be a namespace', param, ctx)
        return str(value)


class ConfigMapReference(click.ParamType[ConfigMapName]):
    """`[NAMESPACE/]NAME`, and perhaps `:KEY`; whose own namespace is meant, others know."""

    name = "namespace/name"

    def __init__(self, *, with_key: bool) -> None:
        self._with_key = with_key
        if with_key:
            self.name = "namespace/name[:key]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ConfigMapName:
        try:
            return ConfigMapName.parse(value, with_key=self._with_key)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def go_bool_option(
    name: str, explanation: str, *, default_text: str
) -> Callable[[_Decorated], _Decorated]:
    """Declare a boolean whose absence can be told from `=false`: None when it was not given."""
    return click.option(
        name,
        type=GoBool(),
        is_flag=False,
        flag_value="true",
        default=None,
        show_default=default_text,
        help=explanation,
    )
