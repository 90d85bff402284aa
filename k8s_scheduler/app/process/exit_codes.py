"""How the process says why it ended. Supervisors and tests rely on the numbers: never reuse one.

| code | meaning                                                                       |
|------|-------------------------------------------------------------------------------|
| 0    | asked to stop, and everything under way was brought to its end                |
| 1    | the lease was lost, or something failed inside; a restart is the way on       |
| 2    | the command line or the configuration is wrong; a restart changes nothing     |
| 3    | no way to authenticate: no usable kubeconfig, and not in a cluster            |
| 4    | the drain ran out of time with writes whose outcome is unknown                |
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of `k8s-scheduler run`; the other commands use OK, FAILURE and USAGE."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NO_CREDENTIALS = 3
    DRAIN_TIMED_OUT = 4
