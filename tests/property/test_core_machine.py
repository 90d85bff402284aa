"""The whole core as a state machine, with an API server that lags, refuses and answers late.

Pods wait for permits and for extenders, are changed, bound by strangers and deleted at every point
of their way, and preempt each other. Whatever happens: no pod is lost or in two places, at most one
Bind is under way for each, no decision overfills a node, and a change that comes while a pod is
being decided about is never missed: at rest nobody is parked whom a node would take.
"""

import copy
import random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, multiple, precondition, rule

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.pods.in_flight import Phase
from k8s_scheduler.core.engine.preemption import post_filter
from k8s_scheduler.core.engine.preemption.work import SEARCH_WORK, WAKING_WORK
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    ExtenderAnswer,
    Message,
    NodeChanged,
    PodChanged,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import AskExtender, Bind, Instruction, Verb
from k8s_scheduler.core.queue import waking
from k8s_scheduler.core.scheduler import Scheduler
from tests.inside import inside
from tests.property.machines.core_world import (
    NODES,
    TAINT,
    USHER,
    Raw,
    Usher,
    holds,
    nodes,
    pods,
    setup,
    welcomes,
)
from tests.property.machines.pacing import Machine, paced
from tests.property.saga_world import TIME, Server
from tests.unit.core.engine.sagas import check_room, state_of

PICKS = st.integers(0, 7)
CHANGES = ("label", "tolerate", "terminate", "delete", "delete", "bind")
ANSWERS = ("all", "all", "none", "one", "error")
BUSY = ("active", "backoff")


class CoreMachine(Machine):
    uids = Bundle("uids")

    @initialize(
        target=uids,
        pace=st.sampled_from([1, 2, 64]),
        there=st.lists(nodes(), min_size=1, max_size=3),
        first=st.lists(pods(), min_size=1, max_size=4),
    )
    def open(self, pace: int, there: list[Raw], first: list[Raw]) -> Any:
        # Small steps, so that much happens between them.
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr(waking, "WORK_PER_STEP", 100 * pace)
        self.patches.setattr(waking, "PODS_PER_STEP", pace)
        # One node in a message, or all: searches for room end now or go on among everything else.
        self.patches.setattr(post_filter, "SEARCH_WORK", 1 if pace < 64 else SEARCH_WORK)
        self.patches.setattr(post_filter, "WAKING_WORK", 1 if pace < 64 else WAKING_WORK)
        self.now = 1000.0
        self.created = 0
        self.usher = Usher()
        self.core = Scheduler(setup(self.usher))
        self.server = Server(random.Random(0))
        # What the core was told last, of pods and nodes.
        self.seen: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        # Binds without an answer; those that were answered well and are not seen on a node yet.
        self.binds: dict[str, Bind] = {}
        self.landed: dict[str, str] = {}
        self.questions: list[AskExtender] = []
        # By pod: the nodes that extenders would not have in its last attempt.
        self.refused: dict[str, frozenset[str]] = {}
        # How much has happened that may help somebody, and how much when a pod set out.
        self.news = 0
        # How many messages since it was last at rest.
        self.told = 0
        self.news_at_departure: dict[str, int] = {}
        for raw in there:
            self.server.put_node(raw)
        found = [self.create(raw, shown=False) for raw in first]
        self.show(shown=True)
        return multiple(*found)

    def teardown(self) -> None:
        if hasattr(self, "patches"):
            self.patches.undo()

    # The cluster

    @rule(target=uids, raw=pods(), shown=st.booleans())
    def create(self, raw: Raw, *, shown: bool) -> str:
        self.created += 1
        raw = copy.deepcopy(raw)
        # Few names: a pod is re-created under a name that is taken, as another pod.
        raw["metadata"].update(name=f"p{self.created % 3}", uid=f"u{self.created}")
        self.server.put_pod(raw)
        self.show(shown=shown)
        return f"u{self.created}"

    @rule(uid=uids, what=st.sampled_from(CHANGES), name=st.sampled_from(NODES), shown=st.booleans())
    def change(self, uid: str, what: str, name: str, *, shown: bool) -> None:
        raw = self.server.pods.get(uid)
        if raw is None:
            return
        if what == "label":
            raw["metadata"]["labels"]["app"] = "z"
        elif what == "tolerate":
            raw["spec"]["tolerations"] = [{"key": TAINT, "operator": "Exists"}]
        elif what == "terminate":
            raw["metadata"]["deletionTimestamp"] = TIME
        elif what == "bind" and not raw["spec"].get("nodeName"):
            raw["spec"]["nodeName"] = name
        if what == "delete":
            self.server.drop_pod(uid)
        else:
            self.server.put_pod(raw)
        self.show(shown=shown)

    @rule(raw=nodes(), gone=st.sampled_from([False, False, True]), shown=st.booleans())
    def change_node(self, raw: Raw, *, gone: bool, shown: bool) -> None:
        if gone:
            self.server.drop_node(raw["metadata"]["name"])
        else:
            self.server.put_node(raw)
        self.show(shown=shown)

    def show(self, *, shown: bool) -> None:
        """Let the watch come up to now, or lag."""
        if shown:
            self.deliver(len(self.server.watch))

    # Between the core and the cluster

    @precondition(lambda self: self.server.watch)
    @rule(count=st.integers(1, 4))
    def deliver(self, count: int) -> None:
        """Let the watch come on."""
        for change in [self.server.watch.pop(0) for _ in self.server.watch[:count]]:
            self.tell(change(self.now))

    @precondition(lambda self: self.server.answers)
    @rule(pick=PICKS)
    def deliver_answer(self, pick: int) -> None:
        """Let an answer come, early or late."""
        answers = self.server.answers
        self.tell(answers.pop(pick % len(answers))(self.now))

    @precondition(lambda self: self.server.asked)
    @rule(pick=PICKS, lucky=st.sampled_from([True, True, False]))
    def execute(self, pick: int, *, lucky: bool) -> None:
        self.server.execute(pick % len(self.server.asked), lucky=lucky)

    @precondition(lambda self: self.server.wished)
    @rule(pick=PICKS)
    def write_condition(self, pick: int) -> None:
        self.server.write_condition(pick % len(self.server.wished))

    @precondition(lambda self: self.questions)
    @rule(pick=PICKS, said=st.sampled_from(ANSWERS))
    def answer(self, pick: int, said: str) -> None:
        """Let an extender speak; it may be about a decision that nobody needs any more."""
        asked = self.questions.pop(pick % len(self.questions))
        passed = {"all": asked.nodes, "one": asked.nodes[:1]}.get(said, ())
        if asked.verb is Verb.FILTER:
            self.refused[asked.uid] = frozenset(asked.nodes) - frozenset(passed)
        error = "no answer" if said == "error" else ""
        answer = (asked.uid, asked.attempt, asked.request, error, passed)
        self.tell(ExtenderAnswer(self.now, *answer))

    @precondition(lambda self: self.at_the_door())
    @rule(pick=PICKS, allow=st.booleans())
    def decide_at_the_door(self, pick: int, *, allow: bool) -> None:
        waiting = self.at_the_door()
        uid = waiting[pick % len(waiting)]
        assert self.usher.waiting is not None
        if allow:
            self.usher.waiting.allow(uid, USHER)
        else:
            self.usher.waiting.reject(uid, USHER, "not tonight")
        self.tell(Tick(self.now))

    def at_the_door(self) -> tuple[PodUid, ...]:
        return () if self.usher.waiting is None else self.usher.waiting.uids(USHER)

    @precondition(lambda self: len(inside(self.core).flights) > 0)
    @rule(uid=uids, later=st.sampled_from([-1, 1, 7]), bound=st.booleans())
    def answer_another_attempt(self, uid: str, later: int, *, bound: bool) -> None:
        """An answer that belongs to no attempt under way is nobody's."""
        flight = inside(self.core).flights.get(PodUid(uid))
        attempt = later if flight is None else flight.queued.attempts + later
        before = state_of(self.core)
        result = BindResult(self.now, PodUid(uid), attempt, NodeName("n0"), bound, "nobody's")
        assert self.core.handle(result) == []
        assert state_of(self.core) == before

    # Time and decisions

    @rule(limit=st.sampled_from([1, 3, 100]))
    def decide(self, limit: int) -> None:
        self.tell(Schedule(self.now, limit))

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 11.0, 40.0]))
    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.tell(Tick(self.now))

    def tell(self, message: Message) -> None:
        """Tell the core, and see what comes of it."""
        self.told += 1
        overfull, parked = self.overfull(), self.parked()
        cause = self.note(message)
        for instruction in self.core.handle(message):
            self.take(instruction)
            self.server.take([instruction])
        grown = set(self.overfull()) - set(overfull) - {cause}
        assert not grown, "a decision has overfilled a node"
        self.nobody_missed_anything(set(self.parked()) - set(parked))
        self.news_at_departure = {
            flight.uid: self.news_at_departure.get(flight.uid, self.news)
            for flight in inside(self.core).flights
        }

    def note(self, message: Message) -> str:
        """Let the model know what the core is told; return the node on which it changes things."""
        if isinstance(message, NodeChanged):
            known = self.nodes.pop(message.name, None)
            if message.node is not None:
                self.nodes[message.name] = message.node
            facts = [None if n is None else (n.spec, n.status) for n in (known, message.node)]
            self.news += facts[0] != facts[1]
            return message.name
        if isinstance(message, PodChanged):
            return self.note_pod(message.uid, message.pod)
        if isinstance(message, BindResult) and self.binds.pop(message.uid, None) is not None:
            pod = self.seen.get(message.uid)
            if message.bound and pod is not None and not pod.spec.node_name:
                self.landed[message.uid] = message.node
        return ""

    def note_pod(self, uid: str, pod: Pod | None) -> str:
        had = self.room().get(uid)
        before = self.seen.pop(uid, None)
        node = "" if pod is None else pod.spec.node_name
        if pod is None:
            self.binds.pop(uid, None)
            self.refused.pop(uid, None)
            self.news += had is not None
        else:
            self.seen[uid] = pod
            self.news += bool(node) and had != node
            if before is not None and _facts(before) != _facts(pod) and uid in self.under_way():
                # What it was judged by is not so any more.
                self.news_at_departure[uid] = -1
        if pod is None or node:
            self.landed.pop(uid, None)
        return node

    def take(self, instruction: Instruction) -> None:
        if isinstance(instruction, Bind):
            assert instruction.uid not in self.binds, "two Binds under way for one pod"
            assert instruction.uid in self.seen, "a Bind for a pod that is gone"
            self.binds[instruction.uid] = instruction
        elif isinstance(instruction, AskExtender):
            self.questions.append(instruction)

    # What the model knows

    def room(self) -> dict[str, str]:
        """Return on which node each pod takes room, as far as the core can know."""
        taken = {uid: pod.spec.node_name for uid, pod in self.seen.items() if pod.spec.node_name}
        return {**self.under_way(), **self.landed, **taken}

    def under_way(self) -> dict[str, str]:
        return {flight.uid: flight.node for flight in inside(self.core).flights}

    def on(self, name: str) -> list[Pod]:
        return [self.seen[uid] for uid, node in self.room().items() if node == name]

    def overfull(self) -> list[str]:
        return [name for name, node in self.nodes.items() if not holds(node, self.on(name))]

    def parked(self) -> list[str]:
        return [queued.uid for queued in inside(self.core).queue.parked]

    def takers(self, pod: Pod) -> set[str]:
        """Return the nodes that would take a pod now; promises to others are kept."""
        promised = [
            (node, other)
            for node, other in inside(self.core).cache.nominations.entries()
            if other.metadata.uid != pod.metadata.uid
            and (other.spec.priority or 0) >= (pod.spec.priority or 0)
        ]
        return {
            name
            for name, node in self.nodes.items()
            if welcomes(node, pod)
            and holds(node, [pod, *self.on(name), *(p for at, p in promised if at == name)])
        }

    # What must hold

    def nobody_missed_anything(self, newly_parked: set[str]) -> None:
        """Who was sent away at the door is tried again if anything happened while it waited."""
        for uid in sorted(newly_parked):
            queued = inside(self.core).queue.get(PodUid(uid))
            departed = self.news_at_departure.get(uid, self.news)
            assert queued is not None
            assert queued.rejectors != (USHER,) or departed == self.news, f"{uid} missed something"

    @invariant()
    def everybody_is_in_one_place(self) -> None:
        queue, flights, cache = (
            inside(self.core).queue,
            inside(self.core).flights,
            inside(self.core).cache,
        )
        for uid, pod in self.seen.items():
            suspended = inside(self.core).state.suspensions._by_uid(PodUid(uid)) is not None
            held = (queue.get(PodUid(uid)) is not None) + (PodUid(uid) in flights) + suspended
            if pod.spec.node_name:
                flight = flights.get(PodUid(uid))
                assert held == (flight is not None)
                assert flight is None or flight.phase is Phase.BINDING
            elif pod.metadata.deletion_timestamp is not None:
                assert held + (uid in self.landed) <= 1
            else:
                assert held + (uid in self.landed) == 1, f"{uid} is in {held} places"
        known: set[str] = {queued.uid for queued in queue} | {flight.uid for flight in flights}
        known |= {pod.metadata.uid for _, pod in cache.nominations.entries()}
        assert known <= set(self.seen)

    @invariant()
    def room_is_taken_once(self) -> None:
        cache = inside(self.core).cache
        found = {p.metadata.uid: cache.nodes.name_of(row) for row, p, _ in cache.placed_pods()}
        assert found == self.room()
        assumed = {p.metadata.uid for _, p, assumed in cache.placed_pods() if assumed}
        assert assumed == {uid for uid in found if not self.seen[uid].spec.node_name}
        check_room(self.core)

    @invariant()
    def whoever_binds_is_owed_an_answer(self) -> None:
        binding = {flight.uid for flight in inside(self.core).flights.in_phase(Phase.BINDING)}
        assert binding == set(self.binds)

    # At rest

    @precondition(lambda self: self.told > 10 or self.questions)
    @rule(said=st.sampled_from(["all", "none", "none"]), seconds=st.sampled_from([0.0, 5.0]))
    def settle(self, said: str, seconds: float) -> None:
        """Answer and show everything, until nothing moves any more; see who is left."""
        self.show(shown=True)
        self.tick(seconds)
        for _ in range(60):
            self.calm_down(said)
            if not any(queued.place.value in BUSY for queued in inside(self.core).queue):
                break
            self.tick(12.0)
        else:
            pytest.fail("it never comes to rest")
        self.told = 0
        assert not len(inside(self.core).flights)
        assert not len(inside(self.core).state.suspensions)
        for queued in inside(self.core).queue.parked:
            if queued.rejectors != (USHER,):
                unasked = self.takers(queued.pod) - self.refused.get(queued.uid, frozenset())
                assert not unasked, f"{queued.uid} is parked, and {sorted(unasked)} would take it"

    def calm_down(self, said: str) -> None:
        server = self.server
        for _ in range(500):
            if server.asked:
                server.execute(0, lucky=True)
            elif server.wished:
                server.write_condition(0)
            elif server.watch:
                self.deliver(100)
            elif server.answers:
                self.deliver_answer(0)
            elif self.questions:
                self.answer(0, said)
            elif self.at_the_door():
                self.decide_at_the_door(0, allow=True)
            elif going := [
                u for u, raw in server.pods.items() if "deletionTimestamp" in raw["metadata"]
            ]:
                server.drop_pod(going[0])
            elif self.core.has_work:
                self.decide(100)
            else:
                return
        pytest.fail("it never calms down")


def _facts(pod: Pod) -> tuple[object, ...]:
    return pod.metadata.labels, pod.spec.tolerations


TestCore = CoreMachine.TestCase
TestCore.settings = paced(times=4, steps=40)
