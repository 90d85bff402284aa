"""What can go wrong with a bed, as one tree; every message is fit to be shown to a user as it is.

TestbedError
├── GoError           no Go toolchain, and none could be installed
├── BuildError        the compiler said no; carries its last lines
├── ComponentError    a process died or did not become ready; carries its last log lines
├── BedExistsError    a bed of that name runs already
└── ApiError          the API server answered, and not with a success
"""


class TestbedError(Exception):
    """Base of the tree."""

    __test__ = False  # the name begins like a test class; pytest must not collect it


class GoError(TestbedError):
    """No Go toolchain, and none could be installed."""


class BuildError(TestbedError):
    """The build ended with an error."""


class ComponentError(TestbedError):
    """A component died or did not become ready."""


class BedExistsError(TestbedError):
    """A bed of that name is registered already."""


class ApiError(TestbedError):
    """An answer of the API server that is not a success."""

    def __init__(self, message: str, *, status: int, reason: str = "") -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.message = message
        self.status = status
        self.reason = reason
