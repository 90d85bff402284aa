"""Random histories of a cluster, in which nothing that a core keeps may become stale.

Everything that decisions depend on changes: nodes, pods, namespaces, services, owners, volumes,
promises. After every step some pods of the few shapes in play are judged by the core, which keeps
evaluations, and from scratch. A twin that keeps nothing may hear the same messages; it must do the
same.
"""

import copy
import random
from collections import Counter as Tally
from typing import Any

import msgspec

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.incoming import Message, Restore, Schedule, Tick
from k8s_scheduler.core.messages.outgoing import Instruction, Log
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.obs.metrics import Metrics
from tests.inside import inside
from tests.property.kept_checks import Scratch, StaleError, check
from tests.property.kept_objects import ObjectChanges
from tests.property.kept_pods import (
    APPS,
    INDEX,
    NODE_CHANGES,
    NODES,
    SCHEDULERS,
    ZONE,
    Raw,
    random_node,
    random_template,
    replica,
    setup,
    vary,
)
from tests.property.kept_tuning import TUNINGS, tuned
from tests.property.saga_world import TIME, Server

METRICS = Metrics().scheduler
# The histories of so many seeds are told to their end: in them planted mistakes are looked for.
LOOKED_AT = 400


class LabellingServer(Server):
    """Writes the zone of its node into a pod when it is bound, as API servers do."""

    def put_pod(self, raw: Raw) -> None:
        node = self.nodes.get(raw["spec"].get("nodeName", ""))
        metadata = raw["metadata"]
        if node is not None and ZONE not in metadata["labels"] and self.rng.random() < 0.5:
            zone = node["metadata"]["labels"].get(ZONE)
            if zone is not None:
                metadata["labels"] = {**metadata["labels"], ZONE: zone}
        super().put_pod(raw)


class History(ObjectChanges):
    """A cluster of a few nodes and workloads, and the core that looks after it."""

    def __init__(
        self,
        seed: int,
        *,
        steps: int = 12,
        scheduler: str = "",
        volumes: bool = False,
        preempts: bool = False,
        has_twin: bool = False,
        verified_share: float = 0.0,
        max_bytes: int | None = None,
        has_kin: bool = False,
        has_promises: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        # Whether most pods are like no other, but akin to many.
        self.has_kin = has_kin
        # Whether many pods are promised room, of all priorities, and stay so.
        self.has_promises = has_promises
        self.steps = steps
        self.volumes = volumes
        self.preempts = preempts
        self.max_bytes = max_bytes
        self.verified_share = verified_share
        self.schedulers = (scheduler or self.rng.choice(SCHEDULERS),)
        self.server = LabellingServer(self.rng)
        self.core = self._core()
        self.twin: Scheduler | None = None
        if has_twin:
            plain = setup(self.schedulers, preempts=preempts, keeps_evaluations=False)
            self.twin = Scheduler(plain, metrics=METRICS)
        self.templates = [
            random_template(self.rng, volumes=volumes and i < 2)
            for i in range(self.rng.randint(2, 4))
        ]
        self.now = 1000.0
        self.created = 0
        self.varied = 0
        # How often something was asked, and how often it was answered from what is kept.
        self.checks = 0
        self.kept = 0
        # Of these, how often promised pods kept rows from the pod that otherwise take it.
        self.withheld = 0
        self.log: list[str] = []
        self.tally: Tally[str] = Tally()
        self.reasons: Tally[str] = Tally()

    def _core(self) -> Scheduler:
        keeping = setup(
            self.schedulers,
            preempts=self.preempts,
            keeps_evaluations=True,
            verified_share=self.verified_share,
        )
        core = Scheduler(keeping, metrics=METRICS)
        if self.max_bytes is not None:
            inside(core).shapes._max_bytes = self.max_bytes
        return core

    def run(self) -> None:
        for name in self.rng.sample(NODES, k=self.rng.randint(2, 4)):
            self.server.put_node(random_node(self.rng, name))
        self.change_namespace()
        self.change_service()
        if self.volumes:
            self.begin_volumes()
        self.deliver()
        for template in self.templates:
            self.create(template)
        self.look()
        steps = self.weights()
        for _ in range(self.steps):
            (step,) = self.rng.choices(list(steps), list(steps.values()))
            self.log.append(step.__name__)
            step(self)
            if self.rng.random() < 0.85:
                self.deliver()
            self.look()
        self._count()

    def weights(self) -> dict[Any, float]:
        """Return the steps of this history, and how often each is taken."""
        steps = {**STEPS, **(VOLUME_STEPS if self.volumes else {})}
        return {**steps, **PROMISE_STEPS} if self.has_promises else steps

    def _count(self) -> None:
        """Add up what the core says of itself."""
        tally = inside(self.core).shapes.tally
        counts = {"answered": tally.answered, "repeated": tally.repeated, "made": tally.made}
        self.tally.update(counts, akin=tally.partial)
        self.reasons.update(tally.renewed)
        self.reasons.update(tally.refused)

    # The core

    def tell(self, message: Message) -> None:
        out = self.core.handle(message)
        if self.twin is not None:
            said = [i for i in self.twin.handle(message) if not isinstance(i, Log)]
            done = [i for i in out if not isinstance(i, Log)]
            if said != done:
                raise StaleError(f"decision:\n kept  {done}\n fresh {said}")
        self._is_sound(out)
        self.server.take(out)

    def _is_sound(self, out: list[Instruction]) -> None:
        for instruction in out:
            if isinstance(instruction, Log) and "stale" in instruction.event:
                raise StaleError(str(instruction))

    def deliver(self) -> None:
        while self.server.watch:
            self.tell(self.server.watch.pop(0)(self.now))

    def look(self) -> None:
        """Judge some pods of the shapes in play, in both ways."""
        scratch = Scratch(self.core)
        for template in self.rng.sample(self.templates, k=2):
            number = self.rng.randint(0, 2)
            self.probe(scratch, self.replica_of(template, f"probe-{number}", number))
        if self.has_promises:
            promised = [pod for pod in self.server.pods.values() if is_promised(pod)]
            if promised:
                self.probe(scratch, self.rng.choice(promised))

    def probe(self, scratch: Scratch, pod: Raw) -> None:
        self.checks += 1
        found = check(
            self.core,
            scratch,
            msgspec.convert(pod, Pod),
            preempts=self.preempts,
            start=self.rng.randint(0, 9),
            judges=self.preempts or self.rng.random() < 0.2,
        )
        self.kept += found.is_kept
        self.withheld += found.is_kept and found.rows_withheld > 0

    # Pods

    def replica_of(self, template: Raw, name: str, number: int) -> Raw:
        pod = replica(
            template,
            name,
            number,
            scheduler=self.rng.choice(self.schedulers),
            priority=self.rng.choice([0, 1, 2] if self.has_promises else [0, 0, 1]),
        )
        if self.has_kin and self.rng.random() < 0.8:
            self.varied += 1
            vary(self.rng, pod, self.varied)
        return pod

    def create(self, template: Raw) -> Raw:
        self.created += 1
        pod = self.replica_of(template, f"p{self.created}", self.created)
        self.server.put_pod(pod)
        return pod

    def create_pods(self) -> None:
        template = self.rng.choice(self.templates)
        for _ in range(self.rng.randint(1, 3)):
            self.create(template)

    def place_pods(self) -> None:
        """Let somebody else bind pods, perhaps to a node that is not there."""
        for _ in range(self.rng.randint(1, 2)):
            pod = self.create(self.rng.choice(self.templates))
            self.server.watch.pop()
            pod["spec"]["nodeName"] = self.some_node() or self.rng.choice(NODES)
            self.server.put_pod(pod)

    def some_node(self) -> str | None:
        names = sorted(self.server.nodes)
        return self.rng.choice(names) if names and self.rng.random() < 0.9 else None

    def some_pod(self, *, placed: bool = False) -> Raw | None:
        pods = [p for p in self.server.pods.values() if not placed or p["spec"].get("nodeName")]
        return self.rng.choice(pods) if pods else None

    def relabel_pod(self) -> None:
        pod = self.some_pod(placed=self.rng.random() < 0.8)
        if pod is not None:
            labels = {**pod["metadata"]["labels"], "app": self.rng.choice([*APPS, "z"])}
            for key, values in (("version", ("1", "2")), (INDEX, ("0", "1", "2"))):
                if self.rng.random() < 0.3:
                    labels[key] = self.rng.choice(values)
            pod["metadata"]["labels"] = labels
            self.server.put_pod(pod)

    def resize_pod(self) -> None:
        pod = self.some_pod(placed=True)
        if pod is not None:
            requests = pod["spec"]["containers"][0]["resources"]["requests"]
            requests["cpu"] = self.rng.choice(["0", "100m", "1", "2"])
            self.server.put_pod(pod)

    def terminate_pod(self) -> None:
        pod = self.some_pod(placed=True)
        if pod is not None:
            pod["metadata"]["deletionTimestamp"] = TIME
            self.server.put_pod(pod)

    def delete_pod(self) -> None:
        pod = self.some_pod(placed=self.rng.random() < 0.7)
        if pod is not None:
            self.server.drop_pod(pod["metadata"]["uid"])

    def promise(self) -> None:
        pods = [p for p in self.server.pods.values() if not p["spec"].get("nodeName")]
        if pods:
            pod = self.rng.choice(pods)
            pod["status"].pop("nominatedNodeName", None)
            if self.rng.random() < 0.6:
                pod["status"]["nominatedNodeName"] = self.rng.choice(NODES)
            self.server.put_pod(pod)

    def break_promises(self) -> None:
        for pod in list(self.server.pods.values()):
            if pod["status"].pop("nominatedNodeName", None):
                self.server.put_pod(pod)

    def promise_many(self) -> None:
        """Promise room to pods that nothing lets go there."""
        template = self.rng.choice(self.templates)
        for _ in range(self.rng.randint(1, 3)):
            pod = self.create(template)
            self.server.watch.pop()
            pod["spec"]["schedulingGates"] = [{"name": "wait"}]
            pod["status"]["nominatedNodeName"] = self.some_node() or self.rng.choice(NODES)
            self.server.put_pod(pod)

    def change_promise(self) -> None:
        """Break a promise, make it for another node, or let the pod be another one."""
        promised = [pod for pod in self.server.pods.values() if is_promised(pod)]
        if not promised:
            return
        pod = self.rng.choice(promised)
        change = self.rng.choice(["break", "move", "label", "priority"])
        if change == "break":
            del pod["status"]["nominatedNodeName"]
        elif change == "move":
            pod["status"]["nominatedNodeName"] = self.rng.choice(NODES)
        elif change == "label":
            labels = {**pod["metadata"]["labels"], "app": self.rng.choice([*APPS, "z"])}
            pod["metadata"]["labels"] = labels
        else:
            pod["spec"]["priority"] = self.rng.choice([0, 1, 2])
        self.server.put_pod(pod)

    # Nodes

    def add_node(self) -> None:
        missing = [name for name in NODES if name not in self.server.nodes]
        if missing:
            self.server.put_node(random_node(self.rng, self.rng.choice(missing)))

    def change_node(self) -> None:
        if self.server.nodes:
            node = copy.deepcopy(self.server.nodes[self.rng.choice(sorted(self.server.nodes))])
            self.rng.choice(NODE_CHANGES)(self.rng, node)
            self.server.put_node(node)

    def drop_node(self) -> None:
        if len(self.server.nodes) > 1:
            self.server.drop_node(self.rng.choice(sorted(self.server.nodes)))

    def replace_node(self) -> None:
        """Let a node come back as another one, under its name or in its place."""
        if self.server.nodes:
            name = self.rng.choice(sorted(self.server.nodes))
            self.server.drop_node(name)
            missing = [other for other in NODES if other not in self.server.nodes]
            new = name if self.rng.random() < 0.5 else self.rng.choice(missing)
            self.server.put_node(random_node(self.rng, new))

    def empty_node(self) -> None:
        """Let a node go, and all its pods, so that its row is free."""
        if len(self.server.nodes) > 1:
            name = self.rng.choice(sorted(self.server.nodes))
            for pod in list(self.server.pods.values()):
                if pod["spec"].get("nodeName") == name:
                    self.server.drop_pod(pod["metadata"]["uid"])
            self.server.drop_node(name)

    # Time and decisions

    def schedule(self) -> None:
        self.tell(Schedule(self.now, self.rng.choice([1, 3, 20])))
        if self.rng.random() < 0.7:
            self.carry_out()

    def carry_out(self) -> None:
        """Let the server do what it was asked for, or refuse to."""
        for _ in range(len(self.server.asked)):
            if self.rng.random() < 0.9:
                self.server.execute(0, lucky=self.rng.random() < 0.8)
        for _ in range(len(self.server.wished)):
            self.server.write_condition(0)
        if self.rng.random() < 0.5:
            # The answer comes before the watch shows it.
            self.answer()
            self.deliver()
        else:
            self.deliver()
            self.answer()

    def answer(self) -> None:
        while self.server.answers:
            self.tell(self.server.answers.pop(0)(self.now))

    def tick(self) -> None:
        self.now += self.rng.choice([0.5, 5.0, 31.0])
        self.tell(Tick(self.now))

    def restart(self) -> None:
        """Go on as another core, from a checkpoint."""
        self._count()
        checkpoint = self.core.checkpoint()
        if self.twin is not None:
            self.twin.checkpoint()
        self.core = self._core()
        self.core.handle(Restore(self.now, checkpoint))


STEPS: dict[Any, float] = {
    History.create_pods: 3,
    History.place_pods: 3,
    History.relabel_pod: 2,
    History.resize_pod: 1,
    History.terminate_pod: 2,
    History.delete_pod: 3,
    History.promise: 0.6,
    History.break_promises: 1,
    History.add_node: 2,
    History.change_node: 5,
    History.drop_node: 1,
    History.replace_node: 1.5,
    History.empty_node: 0.7,
    History.change_namespace: 1.2,
    History.change_service: 1.2,
    History.change_owner: 1,
    History.schedule: 4,
    History.carry_out: 1,
    History.tick: 1,
    History.restart: 0.3,
}
PROMISE_STEPS: dict[Any, float] = {
    History.promise_many: 6,
    History.change_promise: 4,
    History.break_promises: 0.3,
}
VOLUME_STEPS: dict[Any, float] = {
    History.change_class: 0.5,
    History.change_claim: 2,
    History.change_volume: 2,
    History.change_csi_node: 1.5,
    History.change_attachment: 0.7,
    History.control_volumes: 1.5,
}


def is_promised(pod: Raw) -> bool:
    """Return whether a pod was promised room and waits for it."""
    return bool(pod["status"].get("nominatedNodeName")) and not pod["spec"].get("nodeName")


def history_of(
    seed: int, made: type[History] = History, **options: Any
) -> tuple[dict[str, int], History]:
    """Return the history of a seed, and what is to be small in it."""
    tuning = TUNINGS[seed % len(TUNINGS)]
    kind = seed // len(TUNINGS) % 6
    chosen = {
        "volumes": kind in (1, 4),
        "preempts": kind == 5,
        "has_twin": kind in (2, 4),
        "verified_share": 0.5 if kind in (0, 4) else 0.0,
        "max_bytes": tuning.get("bytes"),
        **options,
    }
    return tuning, made(seed, **chosen)


def run(seed: int, **options: Any) -> History:
    """Run one history; what is found stale is raised, with its seed."""
    tuning = TUNINGS[seed % len(TUNINGS)]
    with tuned(tuning):
        _, history = history_of(seed, **options)
        try:
            history.run()
        except BaseException as error:
            error.add_note(f"seed {seed}, {history.schedulers}, {tuning}, {history.log}")
            raise
    return history
