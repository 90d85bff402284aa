"""Rules about a restored storage: every cache becomes what the server has, ghosts included."""

from tests.simulation import documents as doc
from tests.simulation.audit.scene import Check, Scene
from tests.simulation.audit.views import View
from tests.simulation.history import Happened, SetBack

# What changed so shortly before the end may be on its way.
_ON_THE_WAY_SECONDS = 1.0


class Restores(Check):
    """See the module's docstring. Judged at the end, when everything has been calm for a while."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._alive: dict[str, float] = {}
        self._restored = False

    def happened(self, entry: Happened) -> None:
        if entry.what == "started":
            self._alive[entry.client] = entry.at
        elif entry.what == "stalled":
            # It hears nothing for longer than a run lasts: that is judged by other rules.
            self._alive.pop(entry.client, None)
        elif entry.what == "killed" or entry.what.startswith("exit"):
            self._alive.pop(entry.client, None)

    def set_back(self, entry: SetBack) -> None:
        self._restored = True
        self.scene.count("restored storages")

    def finish(self) -> None:
        calm = self.scene.calm_at
        if not self._restored or calm is None:
            return
        for client, since in self._alive.items():
            # One that has never listed pods, because an answer was lost, knows nothing wrong.
            if since < calm and self.scene.view(client).pods.version:
                self._compare(client, self.scene.view(client))

    def _compare(self, client: str, view: View) -> None:
        known = {doc.uid_of(s.newest): s.newest for s in view.pods.objects.values()}
        truth = {uid: pod for uid, pod in self.scene.pods.items() if not doc.is_over(pod)}
        for uid in sorted({*known, *truth}):
            if self._is_fresh(uid):
                continue
            nodes = [
                None if p is None else doc.node_of(p) for p in (known.get(uid), truth.get(uid))
            ]
            if nodes[0] != nodes[1]:
                self.scene.break_rule(
                    "caches follow a restore", f"{client} knows {uid} on {nodes[0]}, not {nodes[1]}"
                )
        there = sorted(name for name in self.scene.nodes if not self._is_fresh(name))
        missing = [name for name in there if name not in view.nodes.objects]
        ghosts = sorted(name for name in view.nodes.objects if name not in self.scene.nodes)
        if missing or ghosts:
            self.scene.break_rule(
                "caches follow a restore", f"{client} lacks {missing} and has {ghosts}"
            )

    def _is_fresh(self, key: str) -> bool:
        return self.scene.at - self.scene.changed_at.get(key, -1e9) < _ON_THE_WAY_SECONDS
