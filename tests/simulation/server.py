"""The model API server: `FakeApi`'s store with the real server's rules where races are decided.

Lists are consistent, also over pages; a continue token and a watch from before a compaction get
410. Writes that name a version or a uid are refused when it is another. A pod is bound once: not
when it is being deleted, has gates, or is another one of the same name. Pods on a node leave in two
steps, as the kubelet lets them; others go at once.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable

import msgspec

from k8s_scheduler.kube.http.protocol import Response
from tests.fakes.api import FakeApi, _Stored
from tests.fakes.objects import Location, conflict, has_label, locate, matches, not_found
from tests.fakes.transport import FakeStream, Json, Request, status
from tests.fakes.watch import Change
from tests.simulation.documents import GUARDED, merged, timestamp
from tests.simulation.guarded import webhook_refusal
from tests.simulation.history import Call, History
from tests.simulation.loop import VirtualLoop
from tests.simulation.watch import ModelWatch

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/persistentvolumeclaims"
LEASES = "/apis/coordination.k8s.io/v1/leases"
EVENTS = "/apis/events.k8s.io/v1/events"
encode = msgspec.json.Encoder().encode
_TOO_OLD = "The resourceVersion for the provided watch is too old."


class ModelServer(FakeApi):
    """See the module's docstring. `acting` is whose request is being served."""

    def __init__(self, loop: VirtualLoop, history: History, *, streaming_lists: bool) -> None:
        super().__init__(streaming_lists=streaming_lists)
        self.loop = loop
        self.history = history
        self.acting = "cluster"
        self.on_change: Callable[[Change], None] = lambda _change: None
        self.open_watches: dict[ModelWatch, str] = {}
        # The same by what they watch.
        self._watching: defaultdict[str, dict[ModelWatch, None]] = defaultdict(dict)
        # By list path: the version of the last change there.
        self.last_change: defaultdict[str, int] = defaultdict(int)
        # Who holds the lease, and since when it has not been renewed.
        self.holder, self.renewed_at = "", 0.0
        # Whether Bindings in the guarded namespace are answered 500, and not carried out.
        self.webhook_down = False
        # Nobody is answered.
        self.is_down = False
        # Leases have a storage of their own, with versions of their own.
        self.leases_elsewhere = False
        self._lease_version = 0
        # How often the storage was restored.
        self.restored = 0
        self._call: Call | None = None
        self._pages: dict[str, tuple[list[_Stored], int]] = {}
        self._tokens = itertools.count(1)
        self._bytes: dict[tuple[str, int, str], bytes] = {}
        self._kinds: dict[tuple[str, int, str], str] = {}

    # Requests of daemons.

    def serve(self, call: Call) -> Response:
        """Carry out a request of a daemon."""
        self.acting, self._call = call.client, call
        try:
            response = self.answer(call.request)
        finally:
            self.acting, self._call = "cluster", None
        call.storage_version = self.version
        self.history.executed(self.loop.now, call, response.status)
        return response

    def open_watch(self, request: Request, client: "Client") -> ModelWatch | FakeStream:  # noqa: F821
        """Open a watch, or say why not."""
        location = locate(request.path)
        streaming = request.query.get("sendInitialEvents") == "true"
        if streaming and not self.streaming_lists:
            refused = status(422, "Invalid", "sendInitialEvents is forbidden for watch")
            return FakeStream(422, body=refused.body)
        asked = int(request.query.get("resourceVersion") or 0)
        is_elsewhere = self.leases_elsewhere and location.list_path == LEASES
        if not streaming and not is_elsewhere and 0 < asked < self._compacted_version:
            if not self.gone_as_event:
                return FakeStream(410, body=status(410, "Expired", _TOO_OLD).body)
            watch = ModelWatch(self, client, location, request.query)
            watch.send_error(410, "Expired", _TOO_OLD)
            return watch
        watch = ModelWatch(self, client, location, request.query)
        found = self._select(location, request.query.get("fieldSelector", ""))
        if streaming:
            watch.send_list([(stored.encoded, stored.content) for stored in found], self.version)
        elif not asked:
            watch.send_state([(stored.encoded, stored.content) for stored in found])
        else:
            for change in self._history:
                if change.version > asked:
                    watch.tell(change)
        self.open_watches[watch] = client.name
        self._watching[location.list_path][watch] = None
        return watch

    def let_go(self, watch: ModelWatch) -> None:
        """Forget a watch whose client has let go."""
        self.open_watches.pop(watch, None)
        self._watching[watch.location.list_path].pop(watch, None)
        watch.close()

    def kind_for(self, selector: str, change: Change) -> str:
        """Return what a change is to those who watch by a selector; empty if it is nothing."""
        key = (change.location.list_path, change.version, selector)
        kind = self._kinds.get(key)
        if kind is None:
            was = change.before is not None and matches(change.before, selector)
            is_now = change.kind != "DELETED" and matches(change.content, selector)
            kind = ("MODIFIED" if was else "ADDED") if is_now else "DELETED" if was else ""
            self._kinds[key] = kind
        return kind

    def event_bytes(self, kind: str, change: Change) -> bytes:
        """Return a change as it stands on the wire; made once for all who watch."""
        key = (change.location.list_path, change.version, kind)
        if key not in self._bytes:
            self._bytes[key] = encode({"type": kind, "object": change.content}) + b"\n"
        return self._bytes[key]

    # What clusters do themselves.

    def patch(self, path: str, patch: Json) -> Json | None:
        """Merge into an object, if it is there."""
        location = locate(path)
        old = self._stored(location)
        if old is None:
            return None
        return self._store("MODIFIED", location, merged(old.content, patch))

    def remove(self, path: str) -> None:
        """Remove an object, if it is there."""
        if self._stored(locate(path)) is not None:
            self.delete(path)

    def peek(self, path: str) -> Json | None:
        """Return an object by its path, not to be changed."""
        stored = self._stored(locate(path))
        return None if stored is None else stored.content

    def every(self, list_path: str) -> list[Json]:
        """Return all objects under a list path, not to be changed."""
        return [stored.content for stored in self._objects.get(list_path, {}).values()]

    def compact(self) -> None:
        super().compact()
        self._pages.clear()

    def set_back(self, objects: dict[str, dict[str, _Stored]], version: int) -> None:
        """Know these objects and nothing that led to them; every watch is cut."""
        for watch in tuple(self.open_watches):
            watch.cut()
        self._objects, self.version = objects, version
        self._compacted_version = version
        for known in (self._history, self._pages, self._bytes, self._kinds):
            known.clear()
        self.restored += 1
        lease = next(iter(self.every(LEASES)), None)
        self.holder = (lease["spec"].get("holderIdentity") or "") if lease else ""

    # The rules.

    def _on_object(self, request: Request, location: Location, old: _Stored) -> Response:
        uid = old.content["metadata"]["uid"]
        if request.method == "GET":
            return Response(200, old.encoded)
        body = request.json()
        if request.method == "DELETE":
            wanted = (body.get("preconditions") or {}).get("uid", uid)
            if wanted != uid:
                text = (
                    f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
                )
                return conflict(location, message=text)
            self._begin_delete(location, old)
            return status(200, "")
        metadata = body.get("metadata") or {}
        if metadata.get("uid", uid) != uid:
            return status(422, "Invalid", "metadata.uid: Invalid value: field is immutable")
        version = old.content["metadata"]["resourceVersion"]
        if metadata.get("resourceVersion", version) != version:
            return conflict(location)
        if request.method == "PATCH":
            if location.subresource == "status":
                body = {"status": body.get("status") or {}}
            content = merged(old.content, body)
        else:
            content = body
        content["metadata"] = {**content["metadata"], "uid": uid}
        return Response(200, encode(self._store("MODIFIED", location, content)))

    def _begin_delete(self, location: Location, old: _Stored) -> None:
        on_node = old.content.get("spec", {}).get("nodeName")
        if location.list_path != PODS or not on_node:
            self.delete(location.path)
        elif not old.content["metadata"].get("deletionTimestamp"):
            leaving = {"metadata": {"deletionTimestamp": timestamp(self.loop.now)}}
            self._store("MODIFIED", location, merged(old.content, leaving))

    def _bind(self, request: Request, location: Location) -> Response:
        if self.webhook_down and f"/{GUARDED}/" in request.path:
            self.history.fault("webhook down")
            return webhook_refusal()
        old = self._stored(location)
        if old is None:
            return not_found(location)
        binding, pod, name = request.json(), old.content, location.name
        uid = pod["metadata"]["uid"]
        wanted = binding["metadata"].get("uid") or uid
        node = pod["spec"].get("nodeName", "")
        refusal = ""
        if wanted != uid:
            refusal = (
                f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
            )
        elif pod["metadata"].get("deletionTimestamp"):
            refusal = f"pod {name} is being deleted, cannot be assigned to a host"
        elif node:
            refusal = f'pod {name} is already assigned to node "{node}"'
        elif pod["spec"].get("schedulingGates"):
            refusal = f"pod {name} has non-empty .spec.schedulingGates"
        if refusal:
            return conflict(location, message=refusal)
        self.assign(location, binding["target"]["name"])
        return status(201, "", "")

    def assign(self, location: Location, node: str) -> None:
        """Give a pod its node, with what the server writes along with it."""
        old = self._stored(location)
        assert old is not None
        scheduled = {"type": "PodScheduled", "status": "True"}
        patch: Json = {
            "spec": {"nodeName": node},
            "status": {"conditions": [scheduled], "nominatedNodeName": None},
        }
        self._store("MODIFIED", location, merged(old.content, patch))

    def _list(self, request: Request, location: Location) -> Response:
        token = request.query.get("continue", "")
        if token:
            if token not in self._pages:
                return status(410, "Expired", "The provided continue parameter is too old.")
            left, version = self._pages.pop(token)
        else:
            label = request.query.get("labelSelector", "")
            left = [
                stored
                for stored in self._select(location, request.query.get("fieldSelector", ""))
                if has_label(stored.content, label)
            ]
            version = self.version
        limit = int(request.query.get("limit", "0")) or len(left)
        page, left = left[:limit], left[limit:]
        metadata = {"resourceVersion": str(version)}
        if left:
            metadata["continue"] = f"{version}.{next(self._tokens)}"
            self._pages[metadata["continue"]] = (left, version)
        if self._call is not None:
            self._call.page = (not token, [s.content for s in page], version, not left)
        items = b",".join(stored.encoded for stored in page)
        head = b'{"kind":"List","apiVersion":"v1","metadata":' + encode(metadata)
        return Response(200, head + b',"items":[' + items + b"]}\n")

    def _store(self, kind: str, location: Location, content: Json) -> Json:
        old = self._stored(location)
        if self.leases_elsewhere and location.list_path == LEASES:
            self._lease_version += 1
            version = self._lease_version
        else:
            version = self._tick()
        content = {**content, "metadata": {**content["metadata"], "resourceVersion": str(version)}}
        stored = _Stored(location, content, encode(content))
        self._objects.setdefault(location.list_path, {})[location.key] = stored
        before = None if old is None else old.content
        self._publish(Change(kind, location, version, content, before))
        return content

    def _publish(self, change: Change) -> None:
        self._history.append(change)
        self.last_change[change.location.list_path] = change.version
        self.history.changed(self.loop.now, change, self.acting)
        if self._call is not None:
            self._call.changes.append(change)
        for watch in tuple(self._watching[change.location.list_path]):
            watch.tell(change)
        if change.location.list_path == LEASES:
            self.holder = change.content["spec"].get("holderIdentity") or ""
            self.renewed_at = self.loop.now
        self.on_change(change)
