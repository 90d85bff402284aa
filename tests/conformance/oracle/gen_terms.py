"""Where pods want to be: affinity to nodes and to other pods."""

from tests.conformance.oracle.gen_draws import HOST, NS, REGION, ZONE, ZONES, Draws


class Terms(Draws):
    """Draws affinities."""

    def node_term(self):
        r = self.r
        exprs = []
        for _ in range(r.randint(1, 2)):
            k = r.choice(["arch", ZONE, "disk", "size", "missing"])
            op = r.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
            e = {"key": k, "operator": op}
            if op in ("In", "NotIn"):
                e["values"] = r.sample(
                    {
                        "arch": ["amd64", "arm64", "riscv"],
                        ZONE: ZONES,
                        "disk": ["ssd", "hdd"],
                        "size": ["1", "2", "4", "8"],
                        "missing": ["v"],
                    }[k],
                    1,
                )
            elif op in ("Gt", "Lt"):
                e["key"], e["values"] = "size", [str(r.choice([1, 2, 4, 8]))]
            exprs.append(e)
        t = {"matchExpressions": exprs}
        if self.p(0.15):
            t["matchFields"] = [
                {
                    "key": "metadata.name",
                    "operator": r.choice(["In", "NotIn"]),
                    "values": [f"n{r.randint(0, 5)}"],
                }
            ]
            if self.p(0.5):
                del t["matchExpressions"]
        return t

    def pod_term(self):
        r = self.r
        t = {
            "topologyKey": r.choice([HOST, ZONE, REGION, "disk"]),
            "labelSelector": self.selector(),
        }
        if self.p(0.25):
            t["namespaces"] = r.sample(NS, r.randint(1, 2))
        if self.p(0.2):
            t["namespaceSelector"] = r.choice(
                [
                    {},
                    {"matchLabels": {"team": "y"}},
                    {"matchExpressions": [{"key": "team", "operator": "In", "values": ["x"]}]},
                ]
            )
        return t

    def affinity(self, bound):
        a, r = {}, self.r
        if self.on("nodeaffinity"):
            na = {}
            if self.p(0.5):
                na["requiredDuringSchedulingIgnoredDuringExecution"] = {
                    "nodeSelectorTerms": [self.node_term() for _ in range(r.randint(1, 3))]
                }
            if self.p(0.7):
                na["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": r.randint(1, 100), "preference": self.node_term()}
                    for _ in range(r.randint(1, 3))
                ]
            if na:
                a["nodeAffinity"] = na
        if self.on("interpod"):
            for kind in ("podAffinity", "podAntiAffinity"):
                d = {}
                if self.p(0.35 if not bound else 0.25):
                    d["requiredDuringSchedulingIgnoredDuringExecution"] = [
                        self.pod_term() for _ in range(r.randint(1, 2))
                    ]
                if self.p(0.45):
                    d["preferredDuringSchedulingIgnoredDuringExecution"] = [
                        {"weight": r.randint(1, 100), "podAffinityTerm": self.pod_term()}
                        for _ in range(r.randint(1, 2))
                    ]
                if d:
                    a[kind] = d
        return a
