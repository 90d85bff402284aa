"""The core under random histories: nothing lost, nothing overfilled, nothing parked in vain.

The history plays the API server, the watch and the dispatcher: it holds the true pods, hands
their versions to the core in order but at its own pace, answers binds early, late or not at
all, and lets strangers bind and delete. It is driven by a seeded generator of its own: the
interesting histories need many kinds of steps in one run, and hypothesis' rule selection leaves
kinds out on purpose.
"""

import random
from collections import Counter, deque

import msgspec
import pytest

from k8s_scheduler.api.kinds import as_text, from_text
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    NodeChanged,
    PodChanged,
    Restore,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.queue import waking
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.reference import scalar
from tests.unit.core.harness import profile

SETUP = Setup(profiles=(profile(),))
STEPS = 80
wire = msgspec.msgpack.Encoder(enc_hook=as_text)
unwire = msgspec.msgpack.Decoder(Message, dec_hook=from_text)


class History:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.core = Scheduler(SETUP)
        # A second core, born from a checkpoint on the way, must not be told apart.
        self.twin = None
        self.now = 1000.0
        self.created = 0
        self.pods = {}  # the API server's truth
        self.watch = deque()  # versions the core has not seen
        self.seen = {}  # what the core was last told of each pod
        self.nodes = {}
        self.open_binds = []
        self.bound_by_us = Counter()

    def run(self):
        for index in range(self.rng.randint(1, 4)):
            self.set_node(make_node(f"n{index}").offers(cpu="2", memory="8Gi", pods="5").obj())
        for _ in range(STEPS):
            (step,) = self.rng.choices(list(WEIGHTS), WEIGHTS.values())
            step(self)
            self.check()
        self.settle()

    def check(self):
        self.every_pod_is_in_exactly_one_place()
        self.columns_are_the_sum_of_their_pods()
        self.nobody_is_bound_twice()

    def tell(self, message):
        recorded = unwire.decode(wire.encode(message))
        assert recorded == message
        out = self.core.handle(message)
        if self.twin is not None:
            assert self.twin.handle(recorded) == out
        self.open_binds += [i for i in out if isinstance(i, Bind)]
        return out

    def emit(self, uid):
        self.watch.append((uid, self.pods.get(uid)))

    # The world

    def create_pods(self):
        for _ in range(self.rng.randint(1, 3)):
            self.created += 1
            name = f"p{self.created}"
            pod = make_pod(name).request(cpu=self.rng.choice(["0", "500m", "1", "1", "2", "2"]))
            if self.rng.random() < 0.3:
                pod.tolerates(self.rng.choice(["k1", "k2"]), operator="Exists")
            if self.rng.random() < 0.2:
                pod.request(memory="3Gi")
            if self.rng.random() < 0.2:
                pod.priority(self.rng.randint(0, 2))
            if self.rng.random() < 0.1:
                pod.gate("g")
            pod.raw["metadata"]["uid"] = name
            self.pods[name] = pod.obj()
            self.emit(name)

    def some_pod(self):
        return self.rng.choice(sorted(self.pods)) if self.pods else None

    def delete_pod(self):
        name = self.some_pod()
        if name is not None:
            del self.pods[name]
            self.emit(name)

    def change_pod(self):
        """Relabel it and, if it is gated, open the gate."""
        name = self.some_pod()
        if name is None:
            return
        pod = self.pods[name]
        metadata = msgspec.structs.replace(pod.metadata, labels={"l": str(self.rng.random())})
        spec = msgspec.structs.replace(pod.spec, scheduling_gates=None)
        self.pods[name] = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
        self.emit(name)

    def bind_by_stranger(self):
        name = self.some_pod()
        if name is not None:
            self.bind(name, f"n{self.rng.randint(0, 3)}")

    def bind(self, name, node) -> bool:
        pod = self.pods.get(name)
        if pod is None or pod.spec.node_name:
            return False
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self.pods[name] = msgspec.structs.replace(pod, spec=spec)
        self.emit(name)
        return True

    def put_node(self):
        node = make_node(f"n{self.rng.randint(0, 3)}").offers(
            cpu=self.rng.choice(["1", "2", "3"]),
            memory=self.rng.choice(["2Gi", "8Gi"]),
            pods=self.rng.choice(["1", "5"]),
        )
        if self.rng.random() < 0.2:
            node.cordoned()
        if self.rng.random() < 0.3:
            node.taint(
                self.rng.choice(["k1", "k2"]),
                effect=self.rng.choice(["NoSchedule", "PreferNoSchedule"]),
            )
        self.set_node(node.obj())

    def set_node(self, node):
        self.nodes[node.metadata.name] = node
        self.tell(NodeChanged(self.now, NodeName(node.metadata.name), node))

    def drop_node(self):
        name = f"n{self.rng.randint(0, 3)}"
        if self.nodes.pop(name, None) is not None:
            self.tell(NodeChanged(self.now, NodeName(name), None))

    # The shell

    def deliver(self):
        self.hand_over(self.rng.choice([1, 3, 100]))

    def hand_over(self, count):
        for _ in range(min(count, len(self.watch))):
            uid, pod = self.watch.popleft()
            self.seen[uid] = pod
            if pod is None:
                del self.seen[uid]
            self.tell(PodChanged(self.now, PodUid(uid), pod))

    def schedule(self):
        self.tell(Schedule(self.now, self.rng.choice([1, 3, 100])))

    def tick(self):
        self.now += self.rng.choice([0.4, 1.0, 3.0, 31.0])
        self.tell(Tick(self.now))

    def answer_binds(self):
        lucky = self.rng.random() < 0.7
        for _ in range(min(self.rng.randint(1, 3), len(self.open_binds))):
            bind = self.open_binds.pop(self.rng.randrange(len(self.open_binds)))
            bound = lucky and self.bind(bind.uid, bind.node)
            self.bound_by_us[bind.uid] += bound
            message = "" if bound else "the server said no"
            self.tell(BindResult(self.now, bind.uid, bind.attempt, bind.node, bound, message))

    def branch_off_a_twin(self):
        restore = unwire.decode(wire.encode(Restore(self.now, self.core.checkpoint())))
        self.twin = Scheduler(SETUP)
        self.twin.handle(restore)
        assert self.twin.checkpoint() == self.core.checkpoint()

    # What must hold

    def every_pod_is_in_exactly_one_place(self):
        queue, flights, cache = (
            inside(self.core).queue,
            inside(self.core).flights,
            inside(self.core).cache,
        )
        for uid, pod in self.seen.items():
            if pod.spec.node_name:
                assert uid not in queue._pods
                assert cache.node_of(uid) is not None
            else:
                held = (queue.get(uid) is not None) + (uid in flights)
                answered = cache.node_of(uid) is not None and uid not in flights
                assert held + answered == 1, uid
        assert set(queue._pods) <= set(self.seen)

    def columns_are_the_sum_of_their_pods(self):
        cache = inside(self.core).cache
        expected = Counter()
        counts = Counter()
        for row, pod, assumed in cache.placed_pods():
            counts[row] += 1
            for resource, amount in pod_requests(pod, from_status=not assumed).amounts:
                expected[row, resource] += amount
        for row, _ in cache.nodes.used_rows():
            assert cache.nodes.column("pod_count")[row] == counts[row]
            for resource in ("cpu", "memory", "example.com/gpu"):
                column = cache.nodes.column(f"requested/{resource}")
                assert column[row] == expected[row, resource]

    def nobody_is_bound_twice(self):
        assert all(count <= 1 for count in self.bound_by_us.values())

    def settle(self):
        """With all messages handled, no parked pod is feasible."""
        self.hand_over(len(self.watch))
        for _ in range(5000):
            if not self.core.has_work:
                break
            self.tell(Schedule(self.now, 100))
        assert not self.core.has_work
        on_node = {name: [] for name in self.nodes}
        for row, pod, _ in inside(self.core).cache.placed_pods():
            on_node.setdefault(inside(self.core).cache.nodes.name_of(row), []).append(pod)
        for queued in inside(self.core).queue.parked:
            for name, node in self.nodes.items():
                assert scalar.rejection(queued.pod, node, on_node[name]) is not None


WEIGHTS = {
    History.create_pods: 4,
    History.delete_pod: 2,
    History.change_pod: 2,
    History.bind_by_stranger: 1,
    History.put_node: 1,
    History.drop_node: 0.5,
    History.deliver: 5,
    History.schedule: 5,
    History.tick: 2,
    History.answer_binds: 4,
    History.branch_off_a_twin: 0.5,
}


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_histories(first, monkeypatch):
    # Small steps, so that much happens between them.
    monkeypatch.setattr(waking, "WORK_PER_STEP", 100 * (1 + first // 20 % 3))
    monkeypatch.setattr(waking, "PODS_PER_STEP", 1 + first // 20 % 4)
    for seed in range(first, first + 20):
        try:
            History(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
