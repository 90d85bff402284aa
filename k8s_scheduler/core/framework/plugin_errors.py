"""Errors that name the plugin: one that raises fails the pod's cycle, not the scheduler."""

from types import TracebackType

from k8s_scheduler.core.framework.status import StatusError


class PluginError(Exception):
    """A plugin raised, or broke its contract."""

    def __init__(self, plugin: str, extension_point: str, problem: str) -> None:
        super().__init__(f'running {extension_point} plugin "{plugin}": {problem}')
        self.problem = problem
        self.plugin = plugin
        self.extension_point = extension_point


def blame(error: BaseException, plugin: str, extension_point: str) -> PluginError:
    """Return the error that names the plugin; its own words, if it failed on purpose."""
    on_purpose = isinstance(error, StatusError)
    problem = str(error) if on_purpose else f"{type(error).__name__}: {error}"
    return PluginError(plugin, extension_point, problem)


class blaming:  # noqa: N801  read as a phrase: with blaming(plugin, point)
    """Turn whatever a plugin raises into an error that names the plugin."""

    __slots__ = ("_extension_point", "_plugin")

    def __init__(self, plugin: str, extension_point: str) -> None:
        self._plugin = plugin
        self._extension_point = extension_point

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Put the blame on the plugin, but for what ends the process."""
        if isinstance(error, Exception):
            raise blame(error, self._plugin, self._extension_point) from error


def check_answer(answer: object, *kinds: type[object]) -> None:
    """Raise if a plugin answers what its contract does not know; None is always known."""
    if answer is not None and not isinstance(answer, kinds):
        known = ", ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"the answer is {answer!r}, not {known} or None")
