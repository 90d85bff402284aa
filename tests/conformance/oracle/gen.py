"""Random scenarios, one JSON object a line.

    python -m tests.conformance.oracle.gen SEED COUNT FAMILY|all

Each family stresses one part of the scheduler; `mix` puts everything together. The form of a
scenario is in docs/conformance.md.
"""

import argparse
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.conformance.oracle.gen_cluster import Cluster
from tests.conformance.oracle.gen_config import Configurations
from tests.conformance.oracle.gen_draws import FEATURES
from tests.conformance.oracle.gen_pods import Pods
from tests.conformance.oracle.gen_volumes import Volumes

FAMILIES = [
    "resources",
    "nodeaffinity",
    "taints",
    "interpod",
    "spread",
    "ports",
    "images",
    "volumes",
    "preemption",
    "nominated",
    "mix",
    *FEATURES,
]


class Gen(Cluster, Pods, Volumes, Configurations):
    """Draws whole scenarios."""

    def make(self, sid):
        r = self.r
        nn = r.choice([1, 3, 6, 6, 12, 24])
        nodes = [self.node(i) for i in range(nn)]
        self.namespaces()
        self.objects += nodes
        if self.on("spread"):
            self.services()
        if self.on("preemption"):
            self.pdbs()
        vol = self.on("volumes")
        if vol:
            self.volumes(nodes)
        per = r.choice([0, 1, 2, 4]) if "preemption" not in self.features else r.choice([2, 4, 6])
        for i in range(nn * per):
            pd = self.pod(f"b{i}", r.choice(nodes)["metadata"]["name"])
            if vol:
                self.add_volumes(pd)
            self.objects.append(pd)
        for i in range(3):
            pd = self.pod(f"p{i}")
            if vol:
                self.add_volumes(pd)
            self.objects.append(pd)
            self.pending.append(pd["metadata"]["namespace"] + "/" + pd["metadata"]["name"])
        self.make_config()
        s = {"id": sid, "objects": self.objects, "pending": self.pending}
        if self.config:
            s["config"] = self.config
        return s


def scenarios(seed: int, count: int, family: str = "all") -> Iterator[dict[str, Any]]:
    """Yield `count` scenarios of a family, or of each."""
    for name in FAMILIES if family == "all" else [family]:
        for number in range(count):
            rng = random.Random(f"{seed}/{name}/{number}")
            yield Gen(rng, name).make(f"{name}-{seed}-{number}")


def main() -> None:
    """Print scenarios."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.oracle.gen")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, help="scenarios of each family")
    parser.add_argument("family", choices=[*FAMILIES, "all"], nargs="?", default="all")
    arguments = parser.parse_args()
    for scenario in scenarios(arguments.seed, arguments.count, arguments.family):
        print(json.dumps(scenario, separators=(",", ":")))


if __name__ == "__main__":
    main()
