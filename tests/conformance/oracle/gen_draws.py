"""What all parts of a random scenario are drawn from: names, quantities, selectors, chances.

The order of draws is part of the format: a seed must go on giving the same scenario.
"""

import random
from typing import Any

ZONES = ["a", "b", "c"]
APPS = ["web", "db", "cache", "batch"]
NS = ["default", "prod", "dev"]
IMAGES = [f"registry.example.com/app-{i}:v{i % 3}" for i in range(6)]
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
# Families that put several features together; every other family is its own feature.
FEATURES = {
    "preemptterms": ["preemption", "interpod", "spread", "ports"],
    "terminating": ["preemption", "interpod", "spread", "terminating"],
    "nominatedprio": ["nominated", "preemption", "interpod"],
    "capacity": ["volumes", "capacity"],
    "daemonset": ["daemonset", "taints", "resources"],
}


class Draws:
    """A source of chance for one scenario of one family."""

    def __init__(self, rng: random.Random, family: str) -> None:
        self.r, self.family = rng, family
        self.features = set(FEATURES.get(family, [family]))
        self.objects: list[dict[str, Any]] = []
        self.pending: list[str] = []
        self.config: dict[str, Any] | None = None

    def p(self, x):
        return self.r.random() < x

    def on(self, *features):
        """Whether a feature is in play: always where the family names it, sometimes in mix."""
        return not self.features.isdisjoint(features) or (self.family == "mix" and self.p(0.35))

    def qty_cpu(self, hi):
        m = self.r.choice([50, 100, 250, 300, 500, 750, 1000, 1500, 2000, 3333])
        m = min(m, hi)
        return self.r.choice([f"{m}m", str(m / 1000) if m % 10 == 0 else f"{m}m"])

    def qty_mem(self):
        return self.r.choice(
            [
                "64Mi",
                "128Mi",
                "200M",
                "256Mi",
                "500Mi",
                "1Gi",
                "1.5Gi",
                "2G",
                "3Gi",
                "4096Mi",
                "1e9",
                "123456789",
            ]
        )

    def selector(self):
        if self.p(0.5):
            return {"matchLabels": {"app": self.r.choice(APPS)}}
        op = self.r.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        e = {"key": self.r.choice(["app", "tier"]), "operator": op}
        if op in ("In", "NotIn"):
            e["values"] = self.r.sample([*APPS, "front", "back"], self.r.randint(1, 3))
        s = {"matchExpressions": [e]}
        if self.p(0.2):
            s["matchLabels"] = {"app": self.r.choice(APPS)}
        return s
