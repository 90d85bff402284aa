"""What an answer that is no success means to whoever may ask again.

A server that is overloaded or ill says so by its status, and nothing about what it was asked for.
That an object is not there any more is told in three ways, all of them by the server's words: a
404 alone may be that of a proxy without a server behind it, which knows nothing of objects.
"""

from k8s_scheduler.kube.http.protocol import Response


def is_passing(answer: Response) -> bool:
    """Return whether the same request may be answered otherwise in a while."""
    return answer.status == 429 or is_doubtful(answer) or is_foreign(answer)


def is_doubtful(answer: Response) -> bool:
    """Return whether the server, or a proxy before it, gave up: it may have been done or not."""
    return answer.status == 408 or answer.status >= 500


def is_missing(answer: Response) -> bool:
    """Return whether the API server says that there is no such object: in a `Status`."""
    return answer.status == 404 and answer.error().reason != ""


def is_foreign(answer: Response) -> bool:
    """Return whether it is a 404 of somebody else, who says nothing about the object."""
    return answer.status == 404 and not is_missing(answer)


def is_gone(answer: Response) -> bool:
    """Return whether the object is gone, or its name belongs to one of another uid now."""
    if is_missing(answer):
        return True
    message = answer.error().message
    if answer.status == 409:
        # "Precondition failed: UID in precondition: ..., UID in object meta: ..."; every other
        # conflict is with somebody who wrote at the same time.
        return "UID in precondition" in message
    # How the server words a uid in a patch that does not match: an attempt to change it.
    return answer.status == 422 and "metadata.uid" in message
