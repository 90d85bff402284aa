"""One random history of a cluster and its core, and what must hold after every message."""

import abc
import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind, as_text, from_text
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.engine.pods.in_flight import Phase
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    ObjectChanged,
    PodChanged,
    PodRead,
    RequestResult,
    Restore,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import (
    Evict,
    Instruction,
    Log,
    Nominate,
    PatchCondition,
    RecordEvent,
)
from k8s_scheduler.core.queue.queued_pod import QueuePlace
from k8s_scheduler.core.scheduler import Scheduler
from tests.builders import PodBuilder, make_node, make_pod
from tests.inside import inside
from tests.property.saga_guard import SETUP
from tests.property.saga_world import HOST, PV, PVC, TIME, Server, claim, volume
from tests.unit.core.engine.cores import claiming
from tests.unit.core.engine.sagas import check_room, state_of

STEPS = 45
NODES = ("n0", "n1", "n2")
WISHES = {"reserve", "permit", "group", "prebind"}
wire = msgspec.msgpack.Encoder(enc_hook=as_text)
unwire = msgspec.msgpack.Decoder(Message, dec_hook=from_text)


class History(abc.ABC):
    """One cluster, one core, and what happened."""

    setup = SETUP

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.server = Server(self.rng)
        self.core = Scheduler(self.setup)
        self.twin: Scheduler | None = None
        self.now = 1000.0
        self.created = 0
        self.seen: dict[str, Any] = {}
        # Objects that a bound pod took: assumed until the watch shows them.
        self.kept: set[tuple[Kind, str, str]] = set()
        # Victims by request, and whether the server has said that they leave: until they are seen
        # to. Pods whose status was asked to name a node.
        self.requests: dict[int, str] = {}
        self.doomed: dict[str, bool] = {}
        self.named: dict[str, str] = {}
        # What this history came across.
        self.met: Counter[str] = Counter()

    def run(self) -> None:
        for name in NODES[: self.rng.randint(1, 3)]:
            self.put_node(name)
        for name in ("local", "dynamic"):
            provisioner = "kubernetes.io/no-provisioner" if name == "local" else "csi.a"
            self.server.put(
                Kind.STORAGE_CLASS,
                {
                    "metadata": {"name": name},
                    "provisioner": provisioner,
                    "volumeBindingMode": "WaitForFirstConsumer",
                },
            )
        for _ in range(5):
            self.change_claims()
            self.change_volumes()
        self.deliver_all()
        for _ in range(STEPS):
            (step,) = self.rng.choices(list(self.weights()), list(self.weights().values()))
            step(self)
        self.come_to_rest()

    @abc.abstractmethod
    def weights(self) -> dict[Any, float]:
        """Return what may happen, and how often."""

    def tell(self, message: Message) -> None:
        self.before(message)
        out = self.core.handle(message)
        if self.twin is not None:
            assert self.twin.handle(unwire.decode(wire.encode(message))) == out
        self.after(out)
        self.server.take(out)
        self.everybody_is_in_one_place()
        self.preemptions_come_to_their_end()
        self.nobody_names_a_node_in_vain()
        self.who_waits_for_nobody_is_tried_again(out)
        self.queue_and_places_agree()
        self.nobody_waits_in_vain()
        self.nobody_waits_for_what_is_so(message)
        self.only_what_is_under_way_is_assumed()
        check_room(self.core)

    def before(self, message: Message) -> None:
        if isinstance(message, PodRead):
            waiting = inside(self.core).state.unconfirmed.of(message)
            if waiting is None:
                return
            found = "gone" if message.pod is None else "there"
            self.met[f"a pod was read because nobody saw it bound: {found}"] += 1
        if isinstance(message, PodChanged | PodRead):
            if message.pod is None:
                self.seen.pop(message.uid, None)
            else:
                self.seen[message.uid] = message.pod
        elif isinstance(message, BindResult) and message.bound:
            flight = inside(self.core).flights.get(message.uid)
            self.kept.update(flight.objects if flight is not None else ())
        elif isinstance(message, RequestResult) and message.request in self.requests:
            victim = self.requests.pop(message.request)
            self.doomed[victim] = message.done
            if not message.done:
                del self.doomed[victim]
        self.doomed = {
            uid: granted
            for uid, granted in self.doomed.items()
            if not granted or self.is_staying(uid)
        }

    def after(self, out: list[Instruction]) -> None:
        for instruction in out:
            uid = instruction.uid if not isinstance(instruction, Log) else ""
            if isinstance(instruction, Evict):
                assert instruction.victim.uid not in self.doomed, "evicted twice"
                self.doomed[instruction.victim.uid] = False
                self.requests[instruction.request] = instruction.victim.uid
            elif isinstance(instruction, Nominate):
                self.named[uid] = instruction.node
                self.met["a node is named"] += 1
            elif isinstance(instruction, PatchCondition) and uid in self.named:
                if instruction.nominated_node_name is not None:
                    del self.named[uid]
                    self.met["a named node is taken back"] += 1
            elif isinstance(instruction, RecordEvent) and "memory" in instruction.note:
                self.met["a victim is sent back"] += 1

    def is_staying(self, uid: str) -> bool:
        pod = self.seen.get(uid)
        return pod is not None and pod.metadata.deletion_timestamp is None

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    # The cluster

    def put_node(self, name: str = "") -> None:
        name = name or self.rng.choice(NODES)
        node = make_node(name).label(**{HOST: name})
        node.offers(cpu=self.rng.choice(["2", "2", "3"]), memory="8Gi", pods="6")
        if self.maybe(0.05):
            node.cordoned()
        self.server.put_node(node.raw)

    def drop_node(self) -> None:
        self.server.drop_node(self.rng.choice(NODES))

    def change_volumes(self) -> None:
        name = self.rng.choice(["v0", "v1", "v2"])
        if (PV, "", name) in self.server.objects and self.maybe(0.2):
            self.server.drop(PV, "", name)
        elif (PV, "", name) not in self.server.objects:
            self.server.put(PV, volume(name, "local", self.rng.choice(NODES)))

    def change_claims(self) -> None:
        name = self.rng.choice(["c0", "c1", "c2", "c3"])
        if (PVC, "default", name) in self.server.objects and self.maybe(0.2):
            self.server.drop(PVC, "default", name)
        elif (PVC, "default", name) not in self.server.objects:
            self.server.put(PVC, claim(name, self.rng.choice(["local", "dynamic"])))

    def touch_claim(self) -> None:
        """Let somebody else write to a claim or a volume."""
        raws = self.server.all(self.rng.choice([PV, PVC]))
        if raws:
            raw = self.rng.choice(raws)
            raw["metadata"].setdefault("labels", {})["touched"] = str(self.server.version)
            self.server.put(PVC if "namespace" in raw["metadata"] else PV, raw)

    def change_mark(self) -> None:
        if (Kind.STORAGE_CLASS, "", "mark") in self.server.objects and self.maybe(0.4):
            self.server.drop(Kind.STORAGE_CLASS, "", "mark")
        else:
            self.server.put(Kind.STORAGE_CLASS, {"metadata": {"name": "mark"}, "provisioner": "x"})

    # Pods

    def create_pods(self) -> None:
        for _ in range(self.rng.randint(1, 2)):
            self.created += 1
            self.server.put_pod(self.random_pod(f"p{self.created}").raw)

    def random_pod(self, name: str) -> PodBuilder:
        rng = self.rng
        pod = make_pod(name).uid(name).priority(rng.choice([0, 0, 5, 10]))
        pod.request(cpu=rng.choice(["0", "1", "1", "2"])).label(app=rng.choice("xy"))
        wish = rng.choices(
            [("", ""), ("reserve", "no"), ("reserve", "fail"), ("permit", "wait"),
             ("permit", "no"), ("group", "g"), ("prebind", "write"), ("prebind", "look"),
             ("prebind", "fail")],
            [8, 1, 1, 3, 1, 3, 2, 2, 0.5],
        )[0]  # fmt: skip
        if wish[0]:
            pod.label(**{wish[0]: wish[1]})
        if wish == ("permit", "wait"):
            pod.label(after=rng.choice("xy"))
        if self.maybe(0.4):
            claiming(pod, rng.choice(["c0", "c1", "c2", "c3"]))
        if self.maybe(0.1):
            pod.raw["status"]["nominatedNodeName"] = rng.choice(NODES)
        return pod

    def some_pod(self) -> dict[str, Any] | None:
        return self.rng.choice(list(self.server.pods.values())) if self.server.pods else None

    def change_pod(self) -> None:
        raw = self.some_pod()
        if raw is None:
            return
        change = self.rng.choice(["label", "terminate", "bind", "promise", "delete", "delete"])
        if change == "label":
            raw["metadata"]["labels"]["app"] = self.rng.choice("xyz")
        elif change == "terminate":
            raw["metadata"]["deletionTimestamp"] = TIME
        elif change == "bind" and not raw["spec"].get("nodeName"):
            raw["spec"]["nodeName"] = self.rng.choice(NODES)
        elif change == "promise" and not raw["spec"].get("nodeName"):
            raw["status"]["nominatedNodeName"] = self.rng.choice(["", *NODES])
        elif change == "delete":
            self.server.drop_pod(raw["metadata"]["uid"])
            return
        self.server.put_pod(raw)

    def end_terminating(self) -> None:
        for uid, raw in list(self.server.pods.items()):
            if "deletionTimestamp" in raw["metadata"]:
                self.server.drop_pod(uid)

    # Between the two

    def deliver(self) -> None:
        """Let the watch and the answers come on, each in its own time."""
        for _ in range(self.rng.randint(1, 6)):
            waiting = [q for q in (self.server.watch, self.server.answers) if q]
            if not waiting:
                return
            queue = self.rng.choice(waiting)
            index = 0 if queue is self.server.watch else self.rng.randrange(len(queue))
            self.tell(queue.pop(index)(self.now))

    def deliver_all(self) -> None:
        while self.server.watch or self.server.answers:
            self.deliver()

    def execute(self) -> None:
        for _ in range(min(self.rng.randint(1, 3), len(self.server.asked))):
            index = self.rng.randrange(len(self.server.asked))
            self.server.execute(index, lucky=self.maybe(0.8))
        if self.server.wished and self.maybe(0.5):
            self.server.write_condition(0)
        if self.server.reads:
            self.server.read(0)

    def control(self) -> None:
        if self.maybe(0.5):
            self.server.control_volumes()
        else:
            self.server.provision(lucky=self.maybe(0.7))

    def schedule(self) -> None:
        self.tell(Schedule(self.now, self.rng.choice([1, 3, 100])))

    def settle(self) -> None:
        """Decide until there is nothing left to decide now."""
        for _ in range(200):
            if not self.core.has_work:
                return
            self.tell(Schedule(self.now, 100))
        pytest.fail("the core has always something to do")

    def tick(self) -> None:
        self.now += self.rng.choice([0.4, 1.0, 5.0, 12.0, 40.0])
        self.tell(Tick(self.now))

    def branch_off_a_twin(self) -> None:
        restore = unwire.decode(wire.encode(Restore(self.now, self.core.checkpoint())))
        self.twin = Scheduler(self.core.setup)
        self.twin.handle(restore)
        assert self.twin.checkpoint() == self.core.checkpoint()

    # What must hold after every message

    def everybody_is_in_one_place(self) -> None:
        queue, flights, cache = (
            inside(self.core).queue,
            inside(self.core).flights,
            inside(self.core).cache,
        )
        for uid, pod in self.seen.items():
            if self.is_foreign(pod):
                assert queue.get(uid) is None
                continue
            held = (queue.get(uid) is not None) + (uid in flights)
            if pod.spec.node_name:
                assert queue.get(uid) is None
                assert cache.node_of(uid) == pod.spec.node_name
                assert uid not in flights or flights.get(uid).phase is Phase.BINDING
            elif pod.metadata.deletion_timestamp is not None:
                assert held <= 1
            else:
                answered = cache.node_of(uid) is not None and uid not in flights
                assert held + answered == 1, uid
        known = {queued.uid for queued in queue} | {flight.uid for flight in flights}
        known |= {pod.metadata.uid for _, pod, _ in cache.placed_pods()}
        known |= {pod.metadata.uid for _, pod in cache.nominations.entries()}
        assert known <= set(self.seen)

    def is_foreign(self, pod: Any) -> bool:
        """Return whether a pod that is not on its way is nobody's business here."""
        return pod.spec.scheduler_name not in self.core.scheduler_names

    def queue_and_places_agree(self) -> None:
        queue = inside(self.core).queue
        for queued in queue:
            uid = queued.uid
            in_backoff = uid in queue.places.backoff or uid in queue.places.error_backoff
            held = (uid in queue.places.active, in_backoff, uid in queue.parked)
            assert held == tuple(
                queued.place is place
                for place in (QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.PARKED)
            )
        for entry in inside(self.core).state.preemptions.entries():
            queued = queue.get(entry.uid)
            if queued is not None and inside(self.core).evictions.is_under_way(entry.uid):
                assert queued.place in (QueuePlace.PARKED, QueuePlace.GATED)
        for _, pod in inside(self.core).cache.nominations.entries():
            assert inside(self.core).cache.node_of(PodUid(pod.metadata.uid)) is None

    def nobody_waits_in_vain(self) -> None:
        """Whoever waits for an answer, there is somebody who owes it."""
        owed = {a.request for a in self.server.asked if hasattr(a, "request")}
        answers = [answer(0.0) for answer in self.server.answers]
        owed |= {answer.request for answer in answers if hasattr(answer, "request")}
        bound = {a.uid for a in self.server.asked if not hasattr(a, "request")}
        bound |= {answer.uid for answer in answers if isinstance(answer, BindResult)}
        for flight in inside(self.core).flights:
            assert flight.requests <= owed
            assert bool(flight.permits) == (flight.phase is Phase.WAITING)
            assert flight.phase is not Phase.BINDING or flight.uid in bound
            assert inside(self.core).cache.node_of(flight.uid) is not None
        for entry in inside(self.core).state.preemptions.entries():
            assert set(entry.requests) <= owed

    def nobody_waits_for_what_is_so(self, message: Message) -> None:
        """Whoever has something to become true before its Bind, it is not true yet."""
        if not isinstance(message, ObjectChanged | Tick):
            return
        departure = inside(self.core).binding_cycle
        for flight in inside(self.core).flights.in_phase(Phase.PRE_BINDING):
            if flight.requests:
                continue
            self.met["a pod waits for objects"] += 1
            step = inside(self.core).profiles.of_flight(flight).pre_binds[flight.step]
            view = departure._view(step, flight)
            assert not step.plugin.pre_bound(flight.state, flight.pod, view)

    def preemptions_come_to_their_end(self) -> None:
        """None stands still, whatever has become of its pod; none is over before it is seen."""
        evictions = inside(self.core).evictions
        entries = inside(self.core).state.preemptions.entries()
        asked = {uid for entry in entries for uid in entry.requests.values()}
        granted = set(inside(self.core).state.preemptions.granted)
        assert granted == {uid for uid, said in self.doomed.items() if said}
        for uid in granted:
            raw = self.server.pods.get(uid)
            assert raw is None or "deletionTimestamp" in raw["metadata"]
        for entry in entries:
            waits = bool(entry.requests or entry.joined)
            unseen = granted & {uid for _, _, uid in entry.victims}
            assert set(entry.joined) <= asked
            assert waits or (entry.stage == 2 and unseen and not entry.failed)
            self.met["two pods need one victim"] += bool(entry.joined)
            self.met["a victim is not seen to leave yet"] += not waits
            self.met["a preemption outlives its pod"] += waits and entry.uid not in self.seen
            self.met["seen before it is answered"] += not evictions.is_under_way(entry.uid)

    def who_waits_for_nobody_is_tried_again(self, out: list[Instruction]) -> None:
        """A pod whose last victim was only sent back does not wait, not even for its backoff."""
        under_way = {entry.uid for entry in inside(self.core).state.preemptions.entries()}
        for event in out:
            if not isinstance(event, RecordEvent) or "memory" not in event.note:
                continue
            if event.related.uid in under_way:
                continue
            self.met["the last victim is sent back"] += 1
            queued = inside(self.core).queue.get(event.related.uid)
            tried = queued is None or queued.attempts > event.attempt
            assert tried or queued.place in (QueuePlace.ACTIVE, QueuePlace.GATED)

    def nobody_names_a_node_in_vain(self) -> None:
        for uid in list(self.named):
            # Who leaves, or has a node, says nothing more of itself.
            if not self.is_staying(uid) or self.seen[uid].spec.node_name:
                del self.named[uid]
        for queued in inside(self.core).queue:
            assert queued.uid not in self.named

    def only_what_is_under_way_is_assumed(self) -> None:
        taken = {key for flight in inside(self.core).flights for key in flight.objects}
        for kind, namespace, name, _, assumed in inside(self.core).cache.objects.entries():
            if assumed is not None:
                assert (kind, namespace, name) in taken | self.kept
            else:
                self.kept.discard((kind, namespace, name))

    # In the end

    def come_to_rest(self) -> None:
        """Grant all wishes, answer and show everything, until nothing moves any more."""
        for raw in self.server.pods.values():
            if WISHES & raw["metadata"]["labels"].keys():
                raw["metadata"]["labels"] = {}
                self.server.put_pod(raw)
        self.server.put(Kind.STORAGE_CLASS, {"metadata": {"name": "mark"}, "provisioner": "x"})
        for _ in range(60):
            if not self.move():
                break
        else:
            pytest.fail("it never comes to rest")
        self.is_as_if_new()
        self.nothing_is_parked_in_vain()

    def move(self) -> bool:
        server = self.server
        moved = False
        while server.asked or server.wished or server.watch or server.answers:
            moved = True
            while server.asked:
                server.execute(0, lucky=True)
            while server.wished:
                server.write_condition(0)
            self.end_terminating()
            self.deliver_all()
        moved |= server.control_volumes() or server.provision(lucky=True)
        moved |= self.core.has_work
        self.settle()
        while server.reads:
            moved = True
            server.read(0)
        if not moved and (
            len(inside(self.core).flights) or len(inside(self.core).state.unconfirmed)
        ):
            self.now += 700.0
            self.tell(Tick(self.now))
            return True
        return moved

    def is_as_if_new(self) -> None:
        server, fresh = Server(self.rng), Scheduler(self.core.setup)
        for raw in self.server.nodes.values():
            server.put_node(raw)
        for (kind, _, _), raw in self.server.objects.items():
            server.put(kind, raw)
        for raw in self.server.pods.values():
            server.put_pod(raw)
        for change in server.watch:
            fresh.handle(change(self.now))
        mine, other = state_of(self.core), state_of(fresh)
        for part in ("placed", "pending", "promises", "room", "evictions"):
            assert mine[part] == other[part], part
        assert all(assumed is None for *_, assumed in mine["objects"])

    def nothing_is_parked_in_vain(self) -> None:
        for queued in inside(self.core).queue.parked:
            names = inside(self.core).profiles[queued.pod.spec.scheduler_name].filter_names
            if set(queued.rejectors) <= set(names):
                feasible = self.core.judge(queued.pod).feasible
                assert feasible == (), f"{queued.uid} rejected by {queued.rejectors}"
