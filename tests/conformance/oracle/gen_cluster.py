"""Nodes, and what surrounds pods: namespaces, services and owners, disruption budgets."""

from tests.conformance.oracle.gen_draws import APPS, HOST, IMAGES, NS, REGION, ZONE, ZONES, Draws


class Cluster(Draws):
    """Draws nodes and what surrounds pods."""

    def namespaces(self):
        for ns in NS:
            self.objects.append(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {
                        "name": ns,
                        "labels": {
                            "kubernetes.io/metadata.name": ns,
                            "team": "x" if ns == "dev" else "y",
                        },
                    },
                }
            )

    def node(self, i):
        r = self.r
        z = r.choice(ZONES)
        labels = {
            HOST: f"n{i}",
            "arch": r.choice(["amd64", "arm64"]),
            "size": str(r.choice([1, 2, 4, 8, 16])),
        }
        if not self.p(0.07):
            labels[ZONE] = z
            labels[REGION] = "r" + ("1" if z != "c" else "2")
        if self.p(0.3):
            labels["disk"] = r.choice(["ssd", "hdd"])
        alloc = {
            "cpu": r.choice(["2", "4", "8", "3900m", "15.5"]),
            "memory": r.choice(["4Gi", "8Gi", "16Gi", "7500Mi", "32G"]),
            "pods": str(r.choice([3, 5, 20, 110])),
            "ephemeral-storage": r.choice(["10Gi", "50Gi", "100G"]),
        }
        if "preemption" in self.features:
            alloc.update(
                cpu=r.choice(["1", "2"]),
                memory=r.choice(["1Gi", "2Gi", "4Gi"]),
                pods=str(r.choice([3, 5, 20])),
            )
        if self.on("resources", "preemption") and self.p(0.5):
            alloc["example.com/gpu"] = str(r.choice([0, 1, 2, 4, 8]))
        if self.on("resources") and self.p(0.3):
            alloc["hugepages-2Mi"] = r.choice(["64Mi", "256Mi"])
        spec = {}
        taints = []
        if self.on("taints"):
            for k in ("dedicated", "gpu", "flaky", "n"):
                if self.p(0.25):
                    t = {
                        "key": k,
                        "effect": r.choice(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
                    }
                    if self.p(0.7):
                        t["value"] = r.choice(["x", "y", "true", "5"])
                    taints.append(t)
            if self.p(0.15):
                spec["unschedulable"] = True
                taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        if taints:
            spec["taints"] = taints
        status = {
            "capacity": alloc,
            "allocatable": alloc,
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        if self.on("images"):
            status["images"] = [
                {
                    "names": [im, im.split(":")[0] + "@sha256:" + "0" * 63 + str(j)],
                    "sizeBytes": r.choice([5, 40, 150, 600, 1500]) * 1024 * 1024,
                }
                for j, im in enumerate(IMAGES)
                if self.p(0.4)
            ]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}", "labels": labels},
            "spec": spec,
            "status": status,
        }

    def services(self):
        for app in APPS:
            if self.p(0.5):
                self.objects.append(
                    {
                        "apiVersion": "v1",
                        "kind": "Service",
                        "metadata": {"name": "svc-" + app, "namespace": "default"},
                        "spec": {"selector": {"app": app}},
                    }
                )
            if self.p(0.3):
                self.objects.append(
                    {
                        "apiVersion": "apps/v1",
                        "kind": "StatefulSet",
                        "metadata": {
                            "name": "sts-" + app,
                            "namespace": "default",
                            "uid": "uid-sts-" + app,
                        },
                        "spec": {"serviceName": "s", "selector": {"matchLabels": {"app": app}}},
                    }
                )
            if self.p(0.3):
                self.objects.append(
                    {
                        "apiVersion": "v1",
                        "kind": "ReplicationController",
                        "metadata": {
                            "name": "rc-" + app,
                            "namespace": "default",
                            "uid": "uid-rc-" + app,
                        },
                        "spec": {"selector": {"app": app}},
                    }
                )
            if self.p(0.6):
                self.objects.append(
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "metadata": {
                            "name": "rs-" + app,
                            "namespace": "default",
                            "uid": "uid-rs-" + app,
                        },
                        "spec": {"selector": {"matchLabels": {"app": app}}},
                    }
                )

    def pdbs(self):
        for app in APPS:
            if self.p(0.6):
                self.objects.append(
                    {
                        "apiVersion": "policy/v1",
                        "kind": "PodDisruptionBudget",
                        "metadata": {"name": "pdb-" + app, "namespace": self.r.choice(NS)},
                        "spec": {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1},
                        "status": {
                            "disruptionsAllowed": self.r.randint(0, 2),
                            "currentHealthy": 1,
                            "desiredHealthy": 1,
                            "expectedPods": 1,
                        },
                    }
                )
