"""What an answer that is no success means for a caller that may ask again.

A server that is overloaded or ill says so by its status, which says nothing about the object. The
API server has three ways to say that an object is gone, and each is told by the text of its answer:
a 404 alone may come from a proxy without a server behind it, which knows nothing of objects.
"""

from k8s_scheduler.kube.http.protocol import Response


def is_passing(answer: Response) -> bool:
    return is_overload(answer) or is_foreign(answer)


def is_overload(answer: Response) -> bool:
    """Return whether the server throttles the request or fails to serve it, a 408 included."""
    return answer.status == 408 or is_unavailable(answer)


def is_unavailable(answer: Response) -> bool:
    """Return whether the server throttles the request or fails to serve it."""
    return answer.status == 429 or answer.status >= 500


def is_doubtful(answer: Response) -> bool:
    """Return whether the server, or a proxy, gave up: the request may have been executed."""
    return answer.status == 408 or answer.status >= 500


def is_missing(answer: Response) -> bool:
    """Return whether the API server says that there is no such object: in a `Status`."""
    return answer.status == 404 and answer.error().reason != ""


def is_foreign(answer: Response) -> bool:
    """Return whether a 404 has no `Status`: a proxy's, which says nothing of the object."""
    return answer.status == 404 and not is_missing(answer)


def is_gone(answer: Response) -> bool:
    """Return whether the object is gone, or its name belongs to one of another uid now."""
    if is_missing(answer):
        return True
    message = answer.error().message
    if answer.status == 409:
        # "Precondition failed: UID in precondition: ..., UID in object meta: ..."; every other
        # conflict is with another write at the same time.
        return "UID in precondition" in message
    # How the server words a uid in a patch that does not match: an attempt to change it.
    return answer.status == 422 and "metadata.uid" in message


def is_overtaken(answer: Response) -> bool:
    """Return whether another write to the same object came first: a repetition may succeed."""
    return answer.status == 409 and not is_gone(answer)
