"""The query parameters of lists and watches, the same as client-go's."""

from k8s_scheduler.kube.resources import Resource, T


def list_query(resource: Resource[T], *, limit: int, continue_: str) -> dict[str, str]:
    """Ask for a page of a consistent list; without a limit for all of it."""
    query = _selected(resource)
    if limit:
        query["limit"] = str(limit)
    if continue_:
        query["continue"] = continue_
    return query


def watch_query(
    resource: Resource[T], resource_version: str, *, timeout_seconds: float
) -> dict[str, str]:
    return _selected(resource) | {
        "watch": "1",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(round(timeout_seconds)),
    }


def streaming_list_query(resource: Resource[T], *, timeout_seconds: float) -> dict[str, str]:
    """Ask for everything as events, then a bookmark, then what happens from there on."""
    return watch_query(resource, "", timeout_seconds=timeout_seconds) | {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }


def _selected(resource: Resource[T]) -> dict[str, str]:
    return {"fieldSelector": resource.field_selector} if resource.field_selector else {}
