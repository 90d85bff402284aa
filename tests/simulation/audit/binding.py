"""Rules about bindings: once, never against better knowledge, and only where there is room."""

from collections import defaultdict

from tests.fakes.transport import Json
from tests.simulation import documents as doc
from tests.simulation.audit.scene import BIND, CONDITION, Check, Scene, is_doubtful, kind_of
from tests.simulation.history import Call, SetBack

# How long before a Binding a condition of the same pod may have held it up.
_HELD_UP_SECONDS = 40.0
# No request is carried out as late as this after it was sent: the model's take 50 s at most.
_SETTLED_SECONDS = 100.0


class Bindings(Check):
    """One successful Binding per pod; no second node while the first may yet be true."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._done: dict[str, Call] = {}
        self._posts: dict[tuple[str, str], list[Call]] = defaultdict(list)
        # The last one of each, whatever a restore has undone since.
        self._last: dict[tuple[str, str], Call] = {}
        self._by_client: dict[str, list[tuple[str, str, Call]]] = defaultdict(list)
        self._conditions: dict[tuple[str, str], float] = {}

    def sent(self, call: Call) -> None:
        kind = kind_of(call)
        if kind == CONDITION:
            uid = self.scene.body(call).get("metadata", {}).get("uid", "")
            key = (call.client, uid)
            if self.scene.at - self._conditions.get(key, -1e9) > _HELD_UP_SECONDS:
                self._conditions[key] = self.scene.at
        if kind != BIND:
            return
        uid, node = self._target(call)
        earlier = self._posts[call.client, uid]
        is_new = all(self._target(post)[1] != node for post in earlier)
        if is_new and not self._is_repetition(call, uid, node):
            self._check_room(call, uid, node)
        for post in earlier:
            self._check_second(call, post, uid=uid, node=node)
        self._check_knowledge(call, uid, node)
        earlier.append(call)
        self._last[call.client, uid] = call
        self._by_client[call.client].append((uid, node, call))

    def executed(self, call: Call) -> None:
        if kind_of(call) != BIND or not call.done:
            return
        uid, node = self._target(call)
        if uid in self._done:
            self.scene.break_rule("one Binding per pod", f"{call} after {self._done[uid]}")
        self._done[uid] = call
        self.scene.count("bound")
        if not self._fits(self._truly_on(node), self.scene.nodes.get(node)):
            self.scene.count("overfilled by a race")

    def set_back(self, entry: SetBack) -> None:
        """What was carried out before a restore counts where the restored storage has it."""
        self._done = {uid: done for uid, done in self._done.items() if uid in self.scene.bound}
        for posts in self._posts.values():
            posts[:] = [post for post in posts if post.executed_at is None]

    def _is_repetition(self, call: Call, uid: str, node: str) -> bool:
        """Return whether a Binding in doubt is sent again: its room was taken when it was decided.

        A restore in between makes no new decision of it, and what others have put there since is
        no fault of who repeats it.
        """
        last = self._last.get((call.client, uid))
        return last is not None and self._target(last)[1] == node and is_doubtful(last.answer)

    def _check_second(self, call: Call, post: Call, *, uid: str, node: str) -> None:
        other = self._target(post)[1]
        if other == node:
            return
        if post.done:
            self.scene.break_rule(
                "no second node while bound", f"{call} to {node}, but {post} bound {uid} to {other}"
            )
        elif is_doubtful(post.answer) and call.sent_at - post.sent_at < _SETTLED_SECONDS:
            self.scene.break_rule(
                "no second node while in doubt",
                f"{call} to {node}, {post} to {other} is not settled",
            )

    def _check_knowledge(self, call: Call, uid: str, node: str) -> None:
        known = self.scene.view(call.client).pod_by_uid(uid)
        if known is None:
            return
        seen = next(
            s for s in self.scene.view(call.client).pods.objects.values() if s.newest is known
        )
        before = seen.before(self._decided_after(call, uid))
        if before is not None and doc.node_of(before) not in ("", node):
            self.scene.break_rule(
                "no Binding against better knowledge",
                f"{call} to {node}, but was shown {uid} on {doc.node_of(before)}",
            )

    def _decided_after(self, call: Call, uid: str) -> float:
        """Return a time after which the decision was surely made."""
        held_up = self._conditions.get((call.client, uid), -1e9)
        recent = call.sent_at - held_up <= _HELD_UP_SECONDS
        return min(call.sent_at, held_up) if recent else call.sent_at

    def _check_room(self, call: Call, uid: str, node: str) -> None:
        """Judge the decision on what its maker had been shown, and had itself done, before."""
        view = self.scene.view(call.client)
        pod = view.pod_by_uid(uid)
        if pod is None or pod["spec"].get("volumes"):
            # One with volumes was decided long before; others are judged with it counted in.
            return
        when = self._decided_after(call, uid)
        seen_node = view.nodes.objects.get(node)
        shown = [] if seen_node is None else seen_node.since(when)
        there = [pod]
        for seen in view.pods.objects.values():
            before = seen.before(when)
            if before is None or doc.uid_of(before) == uid:
                continue
            if doc.node_of(before) == node or (
                not doc.node_of(before) and self._has_bound(call.client, before, node)
            ):
                there.append(before)
        if shown and not any(self._fits(there, version) for version in shown):
            names = sorted(p["metadata"]["name"] for p in there)
            self.scene.break_rule("no node overfilled", f"{call} to {node}, which has {names}")

    def _has_bound(self, client: str, pod: Json, node: str) -> bool:
        """Return whether this client has bound a pod there that it was not shown there yet."""
        return any(
            post.done and self._target(post)[1] == node
            for post in self._posts.get((client, doc.uid_of(pod)), ())
        )

    def _truly_on(self, node: str) -> list[Json]:
        return [
            p for p in self.scene.pods.values() if doc.node_of(p) == node and not doc.is_over(p)
        ]

    @staticmethod
    def _fits(pods: list[Json], node: Json | None) -> bool:
        if node is None:
            return True
        cpu, count = doc.room_of(node)
        return sum(map(doc.milli_cpu_of, pods)) <= cpu and len(pods) <= count

    def _target(self, call: Call) -> tuple[str, str]:
        body = self.scene.body(call)
        return body["metadata"]["uid"], body["target"]["name"]
