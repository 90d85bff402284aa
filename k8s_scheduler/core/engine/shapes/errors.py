"""Why an evaluation is not kept."""


class NotKeptError(Exception):
    """An evaluation can't be kept, or not any longer; the message says why, for a metric."""
