"""What an answer that is no success means to whoever may ask again.

A server that is overloaded or ill says so by its status, and nothing about what it was asked for.
That an object is not there any more is told in three ways, two of them by the server's words.
"""

from k8s_scheduler.kube.http import Response


def is_passing(answer: Response) -> bool:
    """Return whether the same request may be answered otherwise in a while."""
    return answer.status == 429 or is_doubtful(answer)


def is_doubtful(answer: Response) -> bool:
    """Return whether the server, or a proxy before it, gave up: it may have been done or not."""
    return answer.status == 408 or answer.status >= 500


def is_gone(answer: Response) -> bool:
    """Return whether the object is gone, or its name belongs to one of another uid now."""
    if answer.status == 404:
        return True
    message = answer.error().message
    if answer.status == 409:
        # "Precondition failed: UID in precondition: ..., UID in object meta: ..."; every other
        # conflict is with somebody who wrote at the same time.
        return "UID in precondition" in message
    # How the server words a uid in a patch that does not match: an attempt to change it.
    return answer.status == 422 and "metadata.uid" in message
