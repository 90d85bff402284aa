"""What each client has been shown, put together again from what it read off the wire.

A view is a model of an informer: events as they come, and a list that takes away what it did not
name only at its end. When something was shown is kept along, because a decision may be a little
older than the request that tells of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from k8s_scheduler.kube.watch.comparing import PAGE_LIMIT
from tests.fakes.transport import Json
from tests.simulation import documents as doc
from tests.simulation.history import Call, Shown
from tests.simulation.server import NODES, PODS

_OK = 200
_NOT_FOUND = 404
# Lists of this size are asked for their version alone, or to be compared: nothing is made of them.
_NO_KNOWLEDGE = ("1", str(PAGE_LIMIT))
# Nor of the question whether one object is there still.
_BY_NAME = "metadata.name="


@dataclass(slots=True)
class Seen:
    """Versions of one object as they were shown, newest last, with their times."""

    versions: list[tuple[float, Json]] = field(default_factory=list)

    def before(self, when: float) -> Json | None:
        """Return the newest version shown before a time."""
        return next((content for at, content in reversed(self.versions) if at < when), None)

    def since(self, when: float) -> list[Json]:
        """Return the version that held before a time, and all that were shown from then on."""
        before = self.before(when)
        later = [content for at, content in self.versions if at >= when]
        return later if before is None else [before, *later]

    @property
    def newest(self) -> Json:
        return self.versions[-1][1]


class Table:
    """One resource as one client knows it."""

    def __init__(self) -> None:
        self.objects: dict[str, Seen] = {}
        self.version = 0
        self._present: set[str] | None = None

    def put(self, at: float, content: Json) -> None:
        key = doc.key_of(content)
        seen = self.objects.get(key)
        if (
            seen is None
            or doc.uid_of(seen.newest) != doc.uid_of(content)
            or _is_undone(seen, content)
        ):
            seen = self.objects[key] = Seen()
        seen.versions.append((at, content))
        if self._present is not None:
            self._present.add(key)

    def remove(self, content: Json) -> None:
        self.objects.pop(doc.key_of(content), None)

    def begin_list(self) -> None:
        self._present = set()

    def finish_list(self, version: int) -> None:
        for key in list(self.objects):
            if self._present is not None and key not in self._present:
                del self.objects[key]
        self._present = None
        self.version = version

    def advance(self, version: int) -> None:
        if self._present is None:
            self.version = max(self.version, version)


def _is_undone(seen: Seen, content: Json) -> bool:
    """Whether what was shown before is of a history that was undone by a restored storage."""
    was, is_now = (int(c["metadata"]["resourceVersion"]) for c in (seen.newest, content))
    lost_its_node = "containers" in content.get("spec", {}) and doc.node_of(seen.newest)
    return is_now < was or bool(lost_its_node and not doc.node_of(content))


class View:
    """Pods and nodes as one client knows them."""

    def __init__(self) -> None:
        self.tables = {PODS: Table(), NODES: Table()}

    @property
    def pods(self) -> Table:
        return self.tables[PODS]

    @property
    def nodes(self) -> Table:
        return self.tables[NODES]

    def shown(self, entry: Shown) -> None:
        """Take an event of a watch."""
        table = self.tables.get(entry.list_path)
        if table is None:
            return
        match entry.what:
            case "LIST":
                table.begin_list()
            case "LISTED":
                table.finish_list(entry.version)
            case "ADDED" | "MODIFIED":
                table.put(entry.at, entry.content)
                table.advance(entry.version)
            case "DELETED":
                table.remove(entry.content)
                table.advance(entry.version)
            case "BOOKMARK":
                table.advance(entry.version)

    def read(self, call: Call, truth: Mapping[str, Json]) -> None:
        """Take the answer to a question about one pod: it may be over before a watch says so."""
        parts = call.request.path.split("/")  # /api/v1/namespaces/NAMESPACE/pods/NAME
        if parts[-2] != "pods" or call.answer not in {_OK, _NOT_FOUND}:
            return
        asked = {"metadata": {"namespace": parts[-3], "name": parts[-1]}}
        there = (pod for pod in truth.values() if doc.key_of(pod) == doc.key_of(asked))
        if all(doc.is_over(pod) for pod in there):
            self.pods.remove(asked)

    def listed(self, at: float, call: Call) -> None:
        """Take a page of a list."""
        table = self.tables.get(call.request.path)
        if table is None or call.page is None:
            return
        query = call.request.query
        if query.get("limit") in _NO_KNOWLEDGE or _BY_NAME in query.get("fieldSelector", ""):
            return
        first, items, version, last = call.page
        if first:
            table.begin_list()
        for content in items:
            table.put(at, content)
        if last:
            table.finish_list(version)

    def pod_by_uid(self, uid: str) -> Json | None:
        """Return a pod as it was last shown."""
        for seen in self.pods.objects.values():
            if doc.uid_of(seen.newest) == uid:
                return seen.newest
        return None
