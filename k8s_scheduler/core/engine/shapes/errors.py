"""Why something is not kept."""


class NotKeptError(Exception):
    """What plugins said can't be kept, or not any longer; the text is a reason for metrics."""


def count_error(reasons: dict[str, int], error: Exception) -> None:
    """Count an error under its reason."""
    reason = str(error) if isinstance(error, NotKeptError) else "plugin_error"
    reasons[reason] = reasons.get(reason, 0) + 1
