"""An API server in memory, for the reading half and the writing half alike.

Keeps objects by path, numbers every change, and serves get, list (paged, with a field selector),
watch (from a version, streaming lists, bookmarks, 410), create, replace, merge patch, delete and
the binding subresource. Everything that can go wrong with a network is scripted (`transport.py`)
or done by hand: `drop_watches`, `break_watches`, `compact`, `stalled`, `refusing`.

    api = FakeApi()
    api.create("/api/v1/pods", {"metadata": {"namespace": "a", "name": "p"}})
    await api.request("POST", "/api/v1/namespaces/a/pods/p/binding", body=...)
    api.object("/api/v1/namespaces/a/pods/p")["spec"]["nodeName"]

Paths are either list paths (`/api/v1/pods`) or object paths; what is stored is copied in and out.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from k8s_scheduler.kube.http.protocol import Response
from tests.fakes.objects import (
    Location,
    conflict,
    copied,
    has_label,
    locate,
    matches,
    merge,
    not_found,
)
from tests.fakes.transport import FakeStream, FakeTransport, Json, Request, encode, status
from tests.fakes.watch import Change, FakeWatch, gone_event, line

Chunker = Callable[[bytes], Iterable[bytes]]
_TOO_OLD = "The resourceVersion for the provided watch is too old."


@dataclass(slots=True)
class _Stored:
    location: Location
    content: Json
    # Encoded once: listing 20,000 objects must not measure json.dumps.
    encoded: bytes


class FakeApi(FakeTransport):
    """See the module's docstring; every switch is a plain attribute."""

    def __init__(
        self, *, streaming_lists: bool = True, bookmark_interval_seconds: float | None = 60.0
    ) -> None:
        super().__init__()
        self.streaming_lists = streaming_lists
        self.bookmark_interval_seconds = bookmark_interval_seconds
        self.version = 100
        # Watches stay open but say nothing, not even bookmarks.
        self.stalled = False
        # How much later than agreed the end of a watch arrives.
        self.ends_late_by_seconds = 0.0
        # How a watch from compacted history is refused: an ERROR event, or HTTP status 410.
        self.gone_as_event = False
        # How the bytes of a watch are cut into chunks.
        self.chunker: Chunker = lambda data: (data,)
        self.watches: list[FakeWatch] = []
        self._objects: dict[str, dict[str, _Stored]] = {}
        self._history: list[Change] = []
        self._compacted_version = 0
        self._uids = itertools.count(1)

    # What a test does behind the client's back.

    def create(self, path: str, content: Json) -> Json:
        """Add an object under a list path; uid and version are given to it."""
        metadata = content.get("metadata", {})
        location = locate(path).at(metadata.get("namespace", ""), metadata["name"])
        content = copied(content)
        content["metadata"].setdefault("uid", f"uid-{next(self._uids)}")
        return self._store("ADDED", location, content)

    def update(self, path: str, content: Json) -> Json:
        """Replace an object, named by its object path; it keeps its uid."""
        location = locate(path)
        old = self._stored(location)
        assert old is not None, f"no object at {path}"
        content = copied(content)
        content["metadata"]["uid"] = old.content["metadata"]["uid"]
        return self._store("MODIFIED", location, content)

    def delete(self, path: str) -> None:
        """Remove an object, named by its object path."""
        location = locate(path)
        old = self._objects[location.list_path].pop(location.key)
        last = copied(old.content)
        last["metadata"]["resourceVersion"] = str(self._tick())
        self._publish(Change("DELETED", location, self.version, last, old.content))

    def object(self, path: str) -> Json | None:
        """Return an object by its object path."""
        stored = self._stored(locate(path))
        return None if stored is None else copied(stored.content)

    def objects(self, path: str) -> dict[str, Json]:
        """Return everything under a list path, by `namespace/name`."""
        found = self._objects.get(locate(path).list_path, {})
        return {key: copied(stored.content) for key, stored in found.items()}

    # What happens to connections and history.

    def drop_watches(self) -> None:
        """End every open watch as a server does whose timeout has passed."""
        for watch in tuple(self.watches):
            watch.end()

    def break_watches(self, error: Exception) -> None:
        """Break every open watch in the middle."""
        for watch in tuple(self.watches):
            watch.feed(error)

    def compact(self) -> None:
        """Forget history: watches and continue tokens from before now get 410."""
        self._compacted_version = self._tick()
        self._history.clear()

    def snapshot(self) -> "tuple[dict[str, dict[str, _Stored]], int]":
        """Return everything as it is now."""
        return {path: dict(found) for path, found in self._objects.items()}, self.version

    def restore(
        self, snapshot: "tuple[dict[str, dict[str, _Stored]], int]", *, bumped_by: int = 0
    ) -> None:
        """Be as a snapshot says; versions go on from there, or are bumped. Watches stay open."""
        objects, version = snapshot
        self._objects = {path: dict(found) for path, found in objects.items()}
        self.version = self.version + bumped_by if bumped_by else version
        self._compacted_version = self.version
        self._history.clear()

    def send_bookmarks(self) -> None:
        """Send every open watch a bookmark now."""
        for watch in self.watches:
            watch.bookmark(self.version)

    # The server's side of requests.

    def answer(self, request: Request) -> Response:
        location = locate(request.path)
        if location.name == "":
            if request.method == "GET":
                return self._list(request, location)
            return self._create(request, location)
        if location.subresource == "binding" and request.method == "POST":
            return self._bind(request, location)
        old = self._stored(location)
        if old is None:
            return not_found(location)
        return self._on_object(request, location, old)

    def open(self, request: Request) -> FakeStream:
        location = locate(request.path)
        asked = request.query.get("resourceVersion", "")
        streaming = request.query.get("sendInitialEvents") == "true"
        if streaming and not self.streaming_lists:
            refused = status(422, "Invalid", "sendInitialEvents is forbidden for watch")
            return FakeStream(422, body=refused.body)
        watch = FakeWatch(self, location, request.query)
        if not streaming and asked not in {"", "0"}:
            if int(asked) < self._compacted_version:
                return self._refuse_as_gone(watch)
            for change in self._history:
                if change.version > int(asked):
                    watch.tell(change)
        else:
            for stored in self._select(location, request.query.get("fieldSelector", "")):
                watch.feed(b'{"type":"ADDED","object":' + stored.encoded + b"}\n")
            if streaming:
                watch.bookmark(self.version, initial_events_end=True)
        self.watches.append(watch)
        return watch

    def _refuse_as_gone(self, watch: FakeWatch) -> FakeStream:
        if self.gone_as_event:
            watch.feed(line(gone_event(_TOO_OLD)))
            watch.end()
            return watch
        return FakeStream(410, body=status(410, "Expired", _TOO_OLD).body)

    def _on_object(self, request: Request, location: Location, old: _Stored) -> Response:
        if request.method == "GET":
            return Response(200, old.encoded)
        if request.method == "DELETE":
            self.delete(location.path)
            return status(200, "")
        if request.method == "PATCH":
            content = merge(old.content, request.json())
        else:
            content = request.json()
            expected = content.get("metadata", {}).get("resourceVersion", "")
            if expected and expected != old.content["metadata"]["resourceVersion"]:
                return conflict(location)
        content["metadata"]["uid"] = old.content["metadata"]["uid"]
        return Response(200, encode(self._store("MODIFIED", location, content)))

    def _create(self, request: Request, location: Location) -> Response:
        content = request.json()
        metadata = content.setdefault("metadata", {})
        if location.namespace:
            metadata["namespace"] = location.namespace
        if not metadata.get("name"):
            metadata["name"] = f"{metadata['generateName']}{next(self._uids):05}"
        location = location.at(metadata.get("namespace", ""), metadata["name"])
        if self._stored(location) is not None:
            return conflict(location, reason="AlreadyExists")
        return Response(201, encode(self.create(location.list_path, content)))

    def _bind(self, request: Request, location: Location) -> Response:
        old = self._stored(location)
        if old is None:
            return not_found(location)
        binding = request.json()
        expected_uid = binding.get("metadata", {}).get("uid") or old.content["metadata"]["uid"]
        bound = old.content.get("spec", {}).get("nodeName", "")
        if bound or expected_uid != old.content["metadata"]["uid"]:
            return conflict(location, message=f"pod {location.name} is already assigned to node")
        content = merge(old.content, {"spec": {"nodeName": binding["target"]["name"]}})
        annotations = binding.get("metadata", {}).get("annotations")
        if annotations:
            content = merge(content, {"metadata": {"annotations": annotations}})
        self._store("MODIFIED", location, content)
        return status(201, "", "")

    def _list(self, request: Request, location: Location) -> Response:
        label = request.query.get("labelSelector", "")
        selected = [
            stored
            for stored in self._select(location, request.query.get("fieldSelector", ""))
            if has_label(stored.content, label)
        ]
        version, start = self.version, 0
        if token := request.query.get("continue", ""):
            version, start = (int(part) for part in token.split("."))
            if version < self._compacted_version:
                return status(410, "Expired", "The provided continue parameter is too old.")
        limit = int(request.query.get("limit", "0")) or len(selected)
        metadata = {"resourceVersion": str(version)}
        if start + limit < len(selected):
            metadata["continue"] = f"{version}.{start + limit}"
        items = b",".join(stored.encoded for stored in selected[start : start + limit])
        head = b'{"kind":"List","apiVersion":"v1","metadata":' + encode(metadata)
        return Response(200, head + b',"items":[' + items + b"]}\n")

    def _select(self, location: Location, field_selector: str) -> Iterator[_Stored]:
        for stored in self._objects.get(location.list_path, {}).values():
            in_namespace = location.namespace in {"", stored.location.namespace}
            if in_namespace and matches(stored.content, field_selector):
                yield stored

    def _stored(self, location: Location) -> _Stored | None:
        return self._objects.get(location.list_path, {}).get(location.key)

    def _store(self, kind: str, location: Location, content: Json) -> Json:
        old = self._stored(location)
        content["metadata"]["resourceVersion"] = str(self._tick())
        stored = _Stored(location, content, encode(content))
        self._objects.setdefault(location.list_path, {})[location.key] = stored
        before = None if old is None else old.content
        self._publish(Change(kind, location, self.version, content, before))
        return copied(content)

    def _publish(self, change: Change) -> None:
        self._history.append(change)
        for watch in self.watches:
            watch.tell(change)

    def _tick(self) -> int:
        self.version += 1
        return self.version
