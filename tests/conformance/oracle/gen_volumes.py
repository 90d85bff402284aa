"""Storage classes, drivers, volumes, claims, and pods that use them."""

from tests.conformance.oracle.gen_draws import HOST, ZONE, ZONES, Draws


class Volumes(Draws):
    """Draws storage."""

    def volumes(self, nodes):
        r = self.r
        add = self.objects.append
        add(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "wait"},
                "provisioner": "csi.example.com",
                "volumeBindingMode": "WaitForFirstConsumer",
                **(
                    {
                        "allowedTopologies": [
                            {"matchLabelExpressions": [{"key": ZONE, "values": r.sample(ZONES, 2)}]}
                        ]
                    }
                    if self.p(0.5)
                    else {}
                ),
            }
        )
        add(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "local"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )
        add(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "now"},
                "provisioner": "csi.example.com",
                "volumeBindingMode": "Immediate",
            }
        )
        if self.on("capacity"):
            add(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSIDriver",
                    "metadata": {"name": "csi.example.com"},
                    "spec": {"storageCapacity": self.p(0.8), "attachRequired": True},
                }
            )
            for z in ZONES:
                for sc in ("wait", "now"):
                    if self.p(0.7):
                        add(
                            {
                                "apiVersion": "storage.k8s.io/v1",
                                "kind": "CSIStorageCapacity",
                                "metadata": {"name": f"cap-{sc}-{z}", "namespace": "default"},
                                "storageClassName": sc,
                                "nodeTopology": {"matchLabels": {ZONE: z}},
                                "capacity": r.choice(["0", "512Mi", "1Gi", "10Gi"]),
                                **({"maximumVolumeSize": "600Mi"} if self.p(0.2) else {}),
                            }
                        )
        for n in nodes:
            if self.p(0.8):
                add(
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "CSINode",
                        "metadata": {"name": n["metadata"]["name"]},
                        "spec": {
                            "drivers": [
                                {
                                    "name": "csi.example.com",
                                    "nodeID": n["metadata"]["name"],
                                    "topologyKeys": [ZONE],
                                    "allocatable": {"count": r.choice([1, 2, 5])},
                                }
                            ]
                        },
                    }
                )
        for i in range(8):
            kind = r.choice(
                ["bound", "bound", "pending-wait", "pending-local", "pending-now", "missing-pv"]
            )
            mode = r.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"])
            sc = {
                "bound": "wait",
                "pending-wait": "wait",
                "pending-local": "local",
                "pending-now": "now",
                "missing-pv": "wait",
            }[kind]
            pvc = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"pvc{i}", "namespace": "default", "uid": f"uid-pvc{i}"},
                "spec": {
                    "accessModes": [mode],
                    "storageClassName": sc,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
                "status": {"phase": "Pending"},
            }
            if kind in ("bound", "missing-pv"):
                pvc["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
                pvc["spec"]["volumeName"] = f"pv{i}"
                pvc["status"]["phase"] = "Bound"
            add(pvc)
            if kind == "bound":
                z = r.choice(ZONES)
                pv = {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": f"pv{i}", "labels": {}},
                    "spec": {
                        "capacity": {"storage": "1Gi"},
                        "accessModes": [mode],
                        "storageClassName": "wait",
                        "csi": {"driver": "csi.example.com", "volumeHandle": f"h{i}"},
                        "claimRef": {
                            "namespace": "default",
                            "name": f"pvc{i}",
                            "uid": f"uid-pvc{i}",
                        },
                    },
                    "status": {"phase": "Bound"},
                }
                if self.p(0.5):
                    pv["spec"]["nodeAffinity"] = {
                        "required": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": ZONE, "operator": "In", "values": [z]}
                                    ]
                                }
                            ]
                        }
                    }
                elif self.p(0.5):
                    pv["metadata"]["labels"][ZONE] = z
                add(pv)
        for i in range(4):
            add(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": f"lpv{i}"},
                    "spec": {
                        "capacity": {"storage": r.choice(["500Mi", "1Gi", "5Gi"])},
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "local",
                        "local": {"path": "/mnt"},
                        "nodeAffinity": {
                            "required": {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {
                                                "key": HOST,
                                                "operator": "In",
                                                "values": [f"n{r.randint(0, 5)}"],
                                            }
                                        ]
                                    }
                                ]
                            }
                        },
                    },
                    "status": {"phase": "Available"},
                }
            )

    def add_volumes(self, pod):
        r = self.r
        if pod["metadata"]["namespace"] != "default":
            return
        vols = [
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"pvc{r.randint(0, 9)}"}}
            for i in range(r.randint(0, 2))
        ]
        if self.p(0.2):
            vols.append(
                {
                    "name": "disk",
                    "gcePersistentDisk": {
                        "pdName": r.choice(["d1", "d2"]),
                        "readOnly": self.p(0.3),
                    },
                }
            )
        if self.p(0.15):
            vols.append(
                {"name": "ebs", "awsElasticBlockStore": {"volumeID": r.choice(["e1", "e2"])}}
            )
        if self.p(0.2):
            vols.append({"name": "e", "emptyDir": {}})
        if vols:
            pod["spec"]["volumes"] = vols
