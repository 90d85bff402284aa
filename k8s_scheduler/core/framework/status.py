"""kube-scheduler's status codes; their names are metric labels."""

import enum


class Status(enum.StrEnum):
    """How an extension point ended."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"


class AttemptResult(enum.StrEnum):
    """The `result` label of kube-scheduler's attempt metrics."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


# The reasons of the PodScheduled condition.
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
