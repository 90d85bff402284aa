"""Where a valid configuration asks for more than this version does.

Two answers, never silence. *Errors*: the value would change decisions and nothing acts on it
yet, so running without it would be running something else than was asked for. *Warnings*: the
value has no meaning here and decisions do not depend on it; the sentence says why. When a
feature arrives, its entry leaves this module.
"""

from k8s_scheduler.api.config import KubeSchedulerConfiguration
from k8s_scheduler.api.field_errors import FieldError, FieldPath
from k8s_scheduler.api.yaml_positions import Document

_SAMPLING = (
    "sampling nodes is not supported yet: every node is scored; leave it out, or set 0 or 100"
)
_NO_PROFILER = "there is no Go runtime to profile; it has no effect"


def not_supported_yet(settings: KubeSchedulerConfiguration) -> list[FieldError]:
    """Return what the settings ask for that no code acts on."""
    errors = [
        FieldError(("extenders", i), "extenders are not supported yet")
        for i in range(len(settings.extenders))
    ]
    percentages: list[tuple[FieldPath, int | None]] = [
        (("percentageOfNodesToScore",), settings.percentage_of_nodes_to_score)
    ]
    for i, profile in enumerate(settings.profiles):
        path: FieldPath = ("profiles", i, "percentageOfNodesToScore")
        percentages.append((path, profile.percentage_of_nodes_to_score))
    errors += [
        FieldError(path, _SAMPLING)
        for path, percentage in percentages
        if percentage is not None and 0 < percentage < 100
    ]
    return errors


def without_meaning(settings: KubeSchedulerConfiguration, document: Document) -> list[FieldError]:
    """Return what the file says explicitly although it has no effect here."""
    connection: FieldPath = ("clientConnection",)
    reasons: dict[FieldPath, str] = {
        ("parallelism",): "decisions are made on whole columns, not by parallel workers; "
        "it has no effect",
        ("enableProfiling",): _NO_PROFILER,
        ("enableContentionProfiling",): _NO_PROFILER,
        (*connection, "acceptContentTypes"): "this scheduler speaks JSON; it has no effect",
    }
    if settings.client_connection.content_type != "application/json":
        reasons[*connection, "contentType"] = "this scheduler speaks JSON; it has no effect"
    if settings.client_connection.qps <= 0:
        reasons[*connection, "burst"] = "there is no limit unless qps is set; it has no effect"
    return [FieldError(path, reason) for path, reason in reasons.items() if document.has(path)]
