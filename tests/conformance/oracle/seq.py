"""Random sequences of cluster changes, one JSON object a line.

    python -m tests.conformance.oracle.seq SEED COUNT [STEPS]

The objects are there from the start. Each step first applies (creates or replaces) and deletes,
then asks for its pending pods. The same pods, and copies of them under other names, are asked for
again and again while the cluster changes around them. The form is in docs/conformance.md.
"""

import argparse
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.conformance.oracle.gen import FAMILIES, Gen
from tests.conformance.oracle.gen_draws import HOST, IMAGES, NS, ZONE, ZONES

STEPS = 25


def key(o):
    return o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]


class Sequence:
    def __init__(self, rng, family, sid, steps):
        self.r, self.gen = rng, Gen(rng, family)
        base = self.gen.make(sid)
        self.state = {key(o): o for o in base["objects"]}
        self.copies = 0
        self.out = {**base, "objects": copy.deepcopy(base["objects"]), "steps": []}
        del self.out["pending"]
        pending = base["pending"]
        for _ in range(steps):
            self.apply, self.delete = {}, []
            for _ in range(rng.choice([1, 1, 2, 3])):
                rng.choice(
                    [
                        self.bind,
                        self.unbind,
                        self.terminate,
                        self.relabel_pod,
                        self.relabel_node,
                        self.taint,
                        self.cordon,
                        self.resize_node,
                        self.images,
                        self.drop_node,
                        self.add_node,
                        self.relabel_namespace,
                        self.service,
                        self.budget,
                        self.nominate,
                        self.copy_pending,
                        self.copy_pending,
                        self.copy_pending,
                        self.volume,
                        self.touch,
                    ]
                )()
            waiting = [
                f"{k[1]}/{k[2]}"
                for k, o in self.state.items()
                if k[0] == "Pod" and not o["spec"].get("nodeName")
            ]
            ask = [p for p in pending if p in waiting][:3] + rng.sample(
                waiting, min(2, len(waiting))
            )
            self.out["steps"].append(
                {
                    "apply": copy.deepcopy(list(self.apply.values())),
                    "delete": list(self.delete),
                    "pending": sorted(set(ask)),
                }
            )

    # -- what can change
    def pick(self, kind, test=lambda o: True):
        found = [o for k, o in self.state.items() if k[0] == kind and test(o)]
        return copy.deepcopy(self.r.choice(found)) if found else None

    def put(self, o):
        if o:
            k = key(o)
            self.delete = [
                d for d in self.delete if (d["kind"], d.get("namespace", ""), d["name"]) != k
            ]
            self.state[k] = self.apply[k] = o

    def drop(self, o):
        if o:
            k = key(o)
            self.state.pop(k)
            self.apply.pop(k, None)
            self.delete.append(
                {"kind": k[0], **({"namespace": k[1]} if k[1] else {}), "name": k[2]}
            )

    def node_names(self):
        return [k[2] for k in self.state if k[0] == "Node"]

    def bound(self):
        return self.pick("Pod", lambda o: o["spec"].get("nodeName"))

    def waiting(self):
        return self.pick("Pod", lambda o: not o["spec"].get("nodeName"))

    def bind(self):
        p, names = self.waiting(), self.node_names()
        if p and names:
            p["spec"]["nodeName"] = self.r.choice(names)
            p["status"] = {"phase": "Running", "startTime": "2026-02-01T00:00:00Z"}
            self.put(p)

    def unbind(self):
        self.drop(self.bound())

    def terminate(self):
        if p := self.bound():
            p["metadata"]["deletionTimestamp"] = "2026-02-02T00:00:00Z"
            self.put(p)

    def relabel_pod(self):
        if p := self.bound():
            p["metadata"]["labels"] = {
                "app": self.r.choice(["web", "db", "cache", "batch"]),
                **({"tier": "front"} if self.r.random() < 0.5 else {}),
            }
            self.put(p)

    def relabel_node(self):
        if n := self.pick("Node"):
            labels = n["metadata"]["labels"]
            k = self.r.choice([ZONE, "disk", "size", "arch", HOST])
            if k == HOST:
                labels.pop("disk", None)
            elif self.r.random() < 0.2:
                labels.pop(k, None)
            else:
                labels[k] = self.r.choice(
                    {
                        ZONE: ZONES,
                        "disk": ["ssd", "hdd"],
                        "size": ["1", "4", "8"],
                        "arch": ["amd64", "arm64"],
                    }[k]
                )
            self.put(n)

    def taint(self):
        if n := self.pick("Node"):
            n["spec"]["taints"] = (
                []
                if self.r.random() < 0.5
                else [
                    {
                        "key": self.r.choice(["dedicated", "gpu"]),
                        "value": "x",
                        "effect": self.r.choice(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
                    }
                ]
            )
            self.put(n)

    def cordon(self):
        if n := self.pick("Node"):
            n["spec"]["unschedulable"] = not n["spec"].get("unschedulable")
            self.put(n)

    def resize_node(self):
        if n := self.pick("Node"):
            n["status"]["allocatable"] = {
                **n["status"]["allocatable"],
                "cpu": self.r.choice(["1", "3", "6", "12"]),
                "memory": self.r.choice(["2Gi", "6Gi", "20Gi"]),
            }
            self.put(n)

    def images(self):
        if n := self.pick("Node"):
            n["status"]["images"] = [
                {"names": [i], "sizeBytes": self.r.choice([40, 600]) * 1024 * 1024}
                for i in IMAGES
                if self.r.random() < 0.5
            ]
            self.put(n)

    def drop_node(self):
        if len(self.node_names()) > 2:
            self.drop(self.pick("Node"))

    def add_node(self):  # often one that was there before, under the same name, with other facts
        free = [i for i in range(26) if f"n{i}" not in self.node_names()]
        if free:
            self.put(self.gen.node(self.r.choice(free[:4])))

    def relabel_namespace(self):
        if n := self.pick("Namespace"):
            n["metadata"]["labels"]["team"] = self.r.choice(["x", "y"])
            self.put(n)

    def service(self):
        if self.r.random() < 0.5:
            self.drop(self.pick("Service"))
        else:
            app = self.r.choice(["web", "db", "cache", "batch"])
            self.put(
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "svc-" + app, "namespace": self.r.choice(NS)},
                    "spec": {"selector": {"app": app}},
                }
            )

    def budget(self):
        if b := self.pick("PodDisruptionBudget"):
            b["status"]["disruptionsAllowed"] = self.r.randint(0, 2)
            self.put(b)

    def nominate(self):
        if (p := self.waiting()) and self.node_names():
            p["status"] = (
                {}
                if p.get("status", {}).get("nominatedNodeName")
                else {"nominatedNodeName": self.r.choice(self.node_names())}
            )
            p["spec"].setdefault("priority", self.r.choice([0, 50, 5000]))
            self.put(p)

    def copy_pending(self):
        if p := self.waiting():
            self.copies += 1
            p["metadata"].update(name=f"copy{self.copies}", uid=f"uid-copy{self.copies}")
            p.pop("status", None)
            self.put(p)

    def volume(self):
        if c := self.pick("PersistentVolumeClaim", lambda o: o["status"]["phase"] == "Bound"):
            self.drop(c) if self.r.random() < 0.3 else self.put(c)
        elif v := self.pick("PersistentVolume"):
            self.drop(v)

    def touch(self):
        self.put(self.pick("Node"))


def sequences(seed: int, count: int, steps: int = STEPS) -> Iterator[dict[str, Any]]:
    """Yield `count` sequences, the families in turn."""
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        rng = random.Random(f"seq/{seed}/{number}")
        yield Sequence(rng, family, f"{family}-seq{seed}-{number}", steps).out


def main() -> None:
    """Print sequences."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.oracle.seq")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("steps", type=int, nargs="?", default=STEPS)
    arguments = parser.parse_args()
    for sequence in sequences(arguments.seed, arguments.count, arguments.steps):
        print(json.dumps(sequence, separators=(",", ":")))


if __name__ == "__main__":
    main()
