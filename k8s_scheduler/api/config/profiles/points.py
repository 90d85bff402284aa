"""The extension points as the file names them, and names that are gone (v1.37.1)."""

from typing import Final

MULTI_POINT: Final = "multiPoint"

# The order in which kube-scheduler expands multiPoint; it decides which message comes first.
EXTENSION_POINTS: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
WEIGHTED_POINTS: Final = frozenset({"score", "placementScore"})

REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
