"""Names the right that a refused call lacked, always in the same words.

Operators search their logs for `missing permission`: every part that gets a 403 logs it in these
words, so that one search finds every right that a role does not grant. The verb is taken from the
API server's message, which is more precise than what we know about the refusal.
"""

import re
from typing import Final

from k8s_scheduler.kube.errors import Forbidden, KubeError

_VERB: Final = re.compile(r"cannot (\w+) resource")


def missing_verb(error: KubeError) -> str:
    """Return the verb that a role would have to grant; empty where none would help."""
    if not isinstance(error, Forbidden):
        return ""
    found = _VERB.search(error.message)
    return found.group(1) if found else ""


def missing_permission(error: KubeError, resource: str, *, namespace: str = "") -> str:
    """Return `missing permission: VERB RESOURCE`; empty where no role would help."""
    verb = missing_verb(error)
    where = f" in namespace {namespace}" if namespace else ""
    return f"missing permission: {verb} {resource}{where}" if verb else ""
