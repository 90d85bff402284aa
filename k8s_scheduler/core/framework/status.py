"""How an attempt ends, in kube-scheduler's words: metric labels and condition reasons."""

import enum


class AttemptResult(enum.StrEnum):
    """The `result` label of kube-scheduler's attempt metrics."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


# The reasons of the PodScheduled condition.
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class StatusError(Exception):
    """A plugin reports, in words for users, that it can't go on: an attempt that fails."""
