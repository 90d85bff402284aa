r"""Objects of custom resources: their metadata, and of the rest only what is declared.

A path names a field as JSON does, level by level: `spec.minMember`. What is below the field, an
object or a list, is kept whole; a path does not lead into lists. A dot within a name is written
`\.`, as in `metadata.annotations.example\.com/rank`. Everything else of the object is skipped by
the decoder: a status that changes all the time is never seen, unless a path leads there.
"""

from typing import Any

import msgspec

from k8s_scheduler.api.meta import ClusterObject


class CustomObject(ClusterObject, frozen=True, gc=False):
    """An object of a custom resource.

    `content` has what was found, by declared path; a path that leads nowhere is not in it.
    Annotations are in `content` alone, and only the declared ones.
    """

    content: dict[str, Any] = msgspec.field(default_factory=dict)
