"""Pods, bound and waiting."""

from tests.conformance.oracle.gen_draws import APPS, HOST, IMAGES, NS, REGION, ZONE
from tests.conformance.oracle.gen_terms import Terms


class Pods(Terms):
    """Draws pods."""

    def container(self, i, small=False):
        r = self.r
        req = {}
        if not self.p(0.12):
            req["cpu"] = self.qty_cpu(
                500 if small else 750 if "preemption" in self.features else 4000
            )
        if not self.p(0.12):
            req["memory"] = (
                r.choice(["64Mi", "100Mi", "256Mi"])
                if small or "preemption" in self.features
                else self.qty_mem()
            )
        if self.on("resources") and self.p(0.3):
            req["ephemeral-storage"] = r.choice(["1Gi", "5Gi", "20Gi"])
        lim = {}
        if self.on("resources") and self.p(0.25):
            req["example.com/gpu"] = lim["example.com/gpu"] = str(r.choice([1, 2]))
        if self.on("resources") and self.p(0.12):
            req["hugepages-2Mi"] = lim["hugepages-2Mi"] = r.choice(["2Mi", "64Mi"])
        c = {
            "name": f"c{i}",
            "image": r.choice(IMAGES) if self.on("images") else "registry.k8s.io/pause:3.10",
        }
        res = {}
        if req:
            res["requests"] = req
        if lim:
            res["limits"] = lim
        if res:
            c["resources"] = res
        if self.on("ports") and self.p(0.6):
            c["ports"] = []
            for _ in range(r.randint(1, 2)):
                port = {
                    "containerPort": 80,
                    "hostPort": r.choice([80, 81, 443]),
                    "protocol": r.choice(["TCP", "UDP"]),
                }
                if self.p(0.5):
                    port["hostIP"] = r.choice(["127.0.0.1", "10.0.0.1", "0.0.0.0"])
                c["ports"].append(port)
        return c

    def pod(self, name, node=None):
        r = self.r
        ns = r.choice(NS) if self.on("interpod", "spread", "preemption") else "default"
        labels = {"app": r.choice(APPS)}
        if self.p(0.4):
            labels["tier"] = r.choice(["front", "back"])
        if self.p(0.5):
            labels["pod-template-hash"] = r.choice(["h1", "h2"])
        small = node is not None
        if "preemption" in self.features:
            labels["app"] = r.choice(APPS[:2])
        spec = {"containers": [self.container(i, small) for i in range(r.randint(1, 2))]}
        if self.on("resources") and self.p(0.4):
            inits = []
            for i in range(r.randint(1, 2)):
                c = self.container(10 + i, small)
                if self.p(0.4):
                    c["restartPolicy"] = "Always"
                inits.append(c)
            spec["initContainers"] = inits
        if self.on("resources") and self.p(0.2):
            spec["overhead"] = {"cpu": "120m", "memory": "64Mi"}
        if self.on("resources") and self.p(0.15):
            spec["resources"] = {"requests": {"cpu": "1200m", "memory": "2Gi"}}
        if self.on("nodeaffinity") and self.p(0.3):
            spec["nodeSelector"] = r.choice([{"arch": "amd64"}, {ZONE: "a"}, {"disk": "ssd"}])
        a = self.affinity(node is not None)
        if self.on("daemonset") and node is None and self.p(0.7):
            a = {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchFields": [
                                    {
                                        "key": "metadata.name",
                                        "operator": "In",
                                        "values": [f"n{r.randint(0, 5)}"],
                                    }
                                ]
                            }
                            for _ in range(r.choice([1, 1, 2]))
                        ]
                    }
                }
            }
        if a:
            spec["affinity"] = a
        if self.on("taints"):
            tol = []
            for _ in range(r.randint(0, 3)):
                t = {}
                if not self.p(0.1):
                    t["key"] = r.choice(
                        ["dedicated", "gpu", "flaky", "node.kubernetes.io/unschedulable", "n"]
                    )
                if "key" not in t or self.p(0.4):
                    t["operator"] = "Exists"
                else:
                    if self.p(0.5):
                        t["operator"] = "Equal"
                    if self.p(0.8):
                        t["value"] = r.choice(["x", "y", "true"])
                if self.p(0.5):
                    t["effect"] = r.choice(["NoSchedule", "PreferNoSchedule", "NoExecute"])
                tol.append(t)
            if tol:
                spec["tolerations"] = tol
        if self.on("spread"):
            cs = []
            for _ in range(r.randint(1, 2)):
                c = {
                    "maxSkew": r.choice([1, 1, 2, 3]),
                    "topologyKey": r.choice([HOST, ZONE, REGION]),
                    "whenUnsatisfiable": r.choice(["DoNotSchedule", "ScheduleAnyway"]),
                    "labelSelector": self.selector(),
                }
                if (c["topologyKey"], c["whenUnsatisfiable"]) in [
                    (x["topologyKey"], x["whenUnsatisfiable"]) for x in cs
                ]:
                    continue
                if c["whenUnsatisfiable"] == "DoNotSchedule" and self.p(0.3):
                    c["minDomains"] = r.choice([1, 2, 3, 5])
                if self.p(0.3):
                    c["nodeAffinityPolicy"] = r.choice(["Honor", "Ignore"])
                if self.p(0.3):
                    c["nodeTaintsPolicy"] = r.choice(["Honor", "Ignore"])
                if self.p(0.25):
                    c["matchLabelKeys"] = ["pod-template-hash"]
                cs.append(c)
            spec["topologySpreadConstraints"] = cs
        if self.on("preemption"):
            spec["priority"] = (
                r.choice([0, 0, 10, 100, 1000]) if node else r.choice([5, 50, 500, 5000])
            )
            if node is None and self.p(0.15):
                spec["preemptionPolicy"] = "Never"
        status = {}
        if node:
            spec["nodeName"] = node
            status = {
                "phase": "Running",
                "startTime": f"2026-01-{r.randint(1, 28):02d}T0{r.randint(0, 9)}:00:00Z",
            }
        elif self.on("nominated") and self.p(0.4):
            status = {"nominatedNodeName": f"n{r.randint(0, 5)}"}
        if self.family == "mix" and node is None and self.p(0.05):
            spec["nodeName"] = ""
        md = {
            "name": name,
            "namespace": ns,
            "uid": f"uid-{name}",
            "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        if self.p(0.3):
            av, kind, short = r.choice(
                [
                    ("apps/v1", "ReplicaSet", "rs"),
                    ("apps/v1", "ReplicaSet", "rs"),
                    ("apps/v1", "StatefulSet", "sts"),
                    ("v1", "ReplicationController", "rc"),
                ]
            )
            md["ownerReferences"] = [
                {
                    "apiVersion": av,
                    "kind": kind,
                    "name": f"{short}-{labels['app']}",
                    "uid": f"uid-{short}-{labels['app']}",
                    "controller": True,
                }
            ]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": md, "spec": spec}
        if status:
            pod["status"] = status
        if node and (
            (self.family == "mix" and self.p(0.05))
            or ("terminating" in self.features and self.p(0.3))
        ):
            md["deletionTimestamp"] = "2026-01-02T00:00:00Z"
            if self.p(0.5):
                pod.setdefault("status", {})["conditions"] = [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                    }
                ]
        return pod
