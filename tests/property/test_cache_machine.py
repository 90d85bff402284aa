"""The cache as a state machine: whatever it has lived through, it is as a new one would be.

The model holds the objects themselves. After each step a fresh cache is filled from them, and both
are compared in everything they hold. What others have to be told of the step is compared too: a
change that is not noted is one that a parked pod misses.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.core.state.cache import Cache, CacheError
from k8s_scheduler.core.state.news.changes import Change
from k8s_scheduler.core.state.rows import NodeRow
from tests.property.machines.cache_view import left_over, look_into
from tests.property.machines.cluster_pods import CHANGES, NODES, Raw, change, nodes, pods
from tests.property.machines.pacing import Machine, paced

NAMES = st.sampled_from(NODES)
QUIET = Change(0)


@dataclass
class Placed:
    """A pod that takes room."""

    raw: Raw
    node: str
    assumed: bool
    announced: bool = False

    @property
    def pod(self) -> Pod:
        return msgspec.convert(self.raw, Pod)


class CacheMachine(Machine):
    created = Bundle("created")

    @initialize()
    def open(self) -> None:
        self.cache = Cache()
        self.count = 0
        self.nodes: dict[str, Raw] = {}
        # In the order in which they took the room that they have now.
        self.placed: dict[str, Placed] = {}
        # Pods that are neither placed nor gone.
        self.pending: dict[str, Raw] = {}
        self.read_keys: list[str] = []
        self.rows: dict[str, NodeRow] = {}

    @contextmanager
    def noting(self, **expected: Change) -> Iterator[None]:
        """Check what a step has others be told: by node, which kinds of change."""
        rows = dict(self.rows)
        yield
        rows |= {name: row for row, name in self.cache.nodes.used_rows()}
        noted = {row: change for row, change in self.cache.changes.drain().rows.items() if change}
        assert noted == {rows[name]: change for name, change in expected.items() if change}

    # Nodes

    @rule(raw=nodes())
    def put_node(self, raw: Raw) -> None:
        name = raw["metadata"]["name"]
        expected = _difference(self.nodes.get(name), raw)
        with self.noting(**{name: expected}):
            self.cache.put_node(msgspec.convert(raw, Node))
        self.nodes[name] = raw

    @precondition(lambda self: len(self.nodes) > 1)
    @rule(name=NAMES)
    def drop_node(self, name: str) -> None:
        known = self.nodes.pop(name, None)
        with self.noting(**{name: QUIET if known is None else Change.NODE_DELETE}):
            self.cache.remove_node(NodeName(name))

    @rule(raw=nodes())
    def refuse_a_node_that_cannot_be_read(self, raw: Raw) -> None:
        raw["status"]["allocatable"]["cpu"] = "1x"
        with self.noting(), pytest.raises(QuantityError):
            self.cache.put_node(msgspec.convert(raw, Node))

    @precondition(lambda self: len(self.read_keys) < 2)
    @rule(key=st.sampled_from(["zone", "host"]))
    def read_labels(self, key: str) -> None:
        """Columns of labels are born when somebody asks for them."""
        self.cache.nodes.labels.column(key)
        if key not in self.read_keys:
            self.read_keys.append(key)

    # Pods

    @rule(target=created, raw=pods())
    def create(self, raw: Raw) -> str:
        self.count += 1
        raw = copy.deepcopy(raw)
        # Few names: a pod is re-created under a name that is taken, as another pod.
        raw["metadata"].update(name=f"p{self.count % 3}", uid=f"u{self.count}")
        self.pending[f"u{self.count}"] = raw
        return f"u{self.count}"

    @precondition(lambda self: self.nodes)
    @rule(uid=created, pick=st.integers(0, 3))
    def assume(self, uid: str, pick: int) -> None:
        name = sorted(self.nodes)[pick % len(self.nodes)]
        row = self.cache.nodes.row_of(NodeName(name))
        assert row is not None
        if uid in self.placed:
            with self.noting(), pytest.raises(CacheError, match="already takes room"):
                self.cache.assume(self.placed[uid].pod, row)
        elif uid in self.pending:
            self.place(uid, self.pending.pop(uid), name, assumed=True)
            with self.noting():
                self.cache.assume(self.placed[uid].pod, row)

    @rule(uid=created)
    def announce(self, uid: str) -> None:
        if uid in self.assumed() and not self.placed[uid].announced:
            self.placed[uid].announced = True
            with self.noting(**{self.placed[uid].node: Change.ASSIGNED_POD_ADD}):
                self.cache.announce(PodUid(uid))

    @rule(uid=created)
    def forget(self, uid: str) -> None:
        """Nobody is told of room that is given back, if nobody was told that it was taken."""
        if uid not in self.assumed():
            with self.noting(), pytest.raises(CacheError, match="is not assumed"):
                self.cache.forget(PodUid(uid))
            return
        placed = self.placed.pop(uid)
        self.pending[uid] = placed.raw
        news = Change.ASSIGNED_POD_DELETE if placed.announced else QUIET
        with self.noting(**{placed.node: news}):
            self.cache.forget(PodUid(uid), quietly=not placed.announced)

    @rule(uid=created, name=NAMES, changes=CHANGES)
    def see_bound(self, uid: str, name: str, changes: Raw) -> None:
        """The watch shows a pod on a node, which need not be there: ours or somebody else's."""
        if uid in self.pending:
            raw = self.pending.pop(uid)
            change(raw, changes)
            raw["spec"]["nodeName"] = name
            self.place(uid, raw, name, assumed=False)
            with self.noting(**{name: Change.ASSIGNED_POD_ADD}):
                self.cache.put_bound(self.placed[uid].pod)

    @rule(uid=created, changes=CHANGES)
    def see_again(self, uid: str, changes: Raw) -> None:
        """A confirmation, an update, or the same once more."""
        if uid in self.placed:
            placed = self.placed[uid]
            before, was_given = copy.deepcopy(placed.raw), self.requests(uid)
            change(placed.raw, changes)
            placed.raw["spec"]["nodeName"] = placed.node
            placed.assumed = False
            now_given = pod_requests(placed.pod, from_status=True).amounts
            expected = _pod_difference(before, placed.raw, was_given, dict(now_given))
            with self.noting(**{placed.node: expected}):
                self.cache.put_bound(placed.pod)

    @rule(uid=created, name=NAMES)
    def see_elsewhere(self, uid: str, name: str) -> None:
        """The watch shows a pod on another node than where it was assumed to go."""
        if uid in self.placed and self.placed[uid].node != name:
            old = self.placed.pop(uid)
            old.raw["spec"]["nodeName"] = name
            self.place(uid, old.raw, name, assumed=False)
            moved = {old.node: Change.ASSIGNED_POD_DELETE, name: Change.ASSIGNED_POD_ADD}
            self.move(old.node, name, moved, self.placed[uid].pod)

    def move(self, old: str, new: str, expected: dict[str, Change], pod: Pod) -> None:
        """Check a move; a row that the pod leaves empty may be the very row that it moves to."""
        before = self.row(old)
        self.cache.put_bound(pod)
        noted = self.cache.changes.drain().rows
        after = self.row(new)
        assert before is not None
        assert after is not None
        if before == after:
            assert noted == {before: expected[old] | expected[new]}
        else:
            assert noted == {before: expected[old], after: expected[new]}

    @rule(uid=created, name=NAMES)
    def refuse_a_pod_that_cannot_be_read(self, uid: str, name: str) -> None:
        raw = copy.deepcopy(self.placed[uid].raw if uid in self.placed else self.pending.get(uid))
        if raw is not None:
            raw["spec"]["nodeName"] = name
            raw["spec"]["containers"].append(
                {"name": "bad", "resources": {"requests": {"cpu": "1x"}}}
            )
            with self.noting(), pytest.raises(QuantityError):
                self.cache.put_bound(msgspec.convert(raw, Pod))

    @rule(target=created, uid=consumes(created), twice=st.booleans())
    def delete(self, uid: str, *, twice: bool) -> object:
        """The watch may say so again, also of pods that never took room."""
        placed = self.placed.pop(uid, None)
        self.pending.pop(uid, None)
        news = {} if placed is None else {placed.node: Change.ASSIGNED_POD_DELETE}
        with self.noting(**news):
            self.cache.remove_pod(PodUid(uid))
        return uid if twice else multiple()

    # The model

    def place(self, uid: str, raw: Raw, node: str, *, assumed: bool) -> None:
        self.placed[uid] = Placed(raw, node, assumed)

    def assumed(self) -> list[str]:
        return [uid for uid, placed in self.placed.items() if placed.assumed]

    def requests(self, uid: str) -> dict[str, int]:
        placed = self.placed[uid]
        return dict(pod_requests(placed.pod, from_status=not placed.assumed).amounts)

    def row(self, name: str) -> NodeRow | None:
        return self.cache.nodes.row_of(NodeName(name))

    def fresh(self) -> Cache:
        cache = Cache()
        for raw in self.nodes.values():
            cache.put_node(msgspec.convert(raw, Node))
        for placed in self.placed.values():
            if placed.assumed:
                cache.assume(placed.pod, cache.nodes.claim_row(NodeName(placed.node)))
            else:
                cache.put_bound(placed.pod)
        return cache

    # What must hold

    @invariant()
    def it_is_as_if_it_were_new(self) -> None:
        mine, other = (look_into(cache, self.read_keys) for cache in (self.cache, self.fresh()))
        for part, found in mine.items():
            assert found == other[part], part

    @invariant()
    def everybody_takes_room_once(self) -> None:
        """The same without a cache: sums over the model's pods."""
        assert self.cache.pod_count == len(self.placed)
        assert self.cache.assumed_count == len(self.assumed())
        for uid, placed in self.placed.items():
            assert self.cache.node_of(PodUid(uid)) == placed.node
            assert self.cache.is_assumed(PodUid(uid)) == placed.assumed
        for uid in self.pending:
            assert self.cache.node_of(PodUid(uid)) is None
        for row, name in self.cache.nodes.used_rows():
            here = [self.requests(uid) for uid, p in self.placed.items() if p.node == name]
            assert self.cache.nodes.column("pod_count")[row] == len(here)
            for resource in ("cpu", "memory", "example.com/gpu"):
                column = self.cache.nodes.column(f"requested/{resource}")
                assert column[row] == sum(asked.get(resource, 0) for asked in here)

    @invariant()
    def rows_stay_and_leave_nothing_behind(self) -> None:
        """Who holds a row keeps it while it is needed; a row that nobody needs is empty."""
        used = {name: row for row, name in self.cache.nodes.used_rows()}
        assert set(used) == set(self.nodes) | {placed.node for placed in self.placed.values()}
        assert all(self.rows.get(name, row) == row for name, row in used.items())
        self.rows = {str(name): row for name, row in used.items()}
        assert left_over(self.cache) == {}


def _difference(before: Raw | None, after: Raw) -> Change:
    """Return what a node's new version has others be told."""
    if before is None:
        return Change.NODE_ADD
    found = QUIET
    if before["status"]["allocatable"] != after["status"]["allocatable"]:
        found |= Change.NODE_ALLOCATABLE
    if before["metadata"]["labels"] != after["metadata"]["labels"]:
        found |= Change.NODE_LABEL
    if before["spec"] != after["spec"]:
        found |= Change.NODE_TAINT
    if before["status"].get("declaredFeatures") != after["status"].get("declaredFeatures"):
        found |= Change.NODE_DECLARED_FEATURE
    return found


def _pod_difference(
    before: Raw, after: Raw, was_given: dict[str, int], now_given: dict[str, int]
) -> Change:
    """Return what a placed pod's new version has others be told."""
    found = QUIET
    if before["metadata"]["labels"] != after["metadata"]["labels"]:
        found |= Change.ASSIGNED_POD_LABEL
    if "deletionTimestamp" in after["metadata"] and "deletionTimestamp" not in before["metadata"]:
        found |= Change.ASSIGNED_POD_TERMINATING
    if any(now_given.get(resource, 0) < amount for resource, amount in was_given.items()):
        found |= Change.ASSIGNED_POD_SCALE_DOWN
    return found


TestCache = CacheMachine.TestCase
TestCache.settings = paced(times=1, steps=50)
