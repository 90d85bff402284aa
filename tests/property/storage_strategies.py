"""Random clusters with storage, as decoded JSON: small, so that things get in each other's way."""

from hypothesis import strategies as st

from tests.reference.storage import Raw

ZONES = ["eu-west-a", "eu-west-b", "us-east-a"]
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
PLUGINS = ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk"]
DRIVERS = ["csi.a", "csi.b", "ebs.csi.aws.com", "disk.csi.azure.com"]
SPACE = "default"
CLAIMS = 4
NODES = 3


class Drawing:
    """Draws from small sets."""

    def __init__(self, draw) -> None:
        self._draw = draw

    def of(self, *choices):
        return self._draw(st.sampled_from(choices))

    def chance(self, one_in: int) -> bool:
        return self._draw(st.integers(1, one_in)) == 1

    def upto(self, most: int, least: int = 0) -> int:
        return self._draw(st.integers(least, most))

    def some(self, choices) -> list:
        return [choice for choice in choices if self._draw(st.booleans())]

    # Nodes

    def node(self, number: int) -> Raw:
        zone, style = self.of(*ZONES), self.of("new", "old", "both", "none")
        labels = {HOST: f"n{number}"}
        if style in ("new", "both"):
            labels |= {ZONE: zone, REGION: zone[:2]}
        if style in ("old", "both"):
            labels |= {BETA_ZONE: zone, BETA_REGION: zone[:2]}
        if self.chance(2):
            labels[EBS_ZONE] = zone
        if self.chance(2):
            labels["tier"] = self.of("1", "2", "3", "no")
        return {"metadata": {"name": f"n{number}", "labels": labels}}

    def csi_node(self, number: int) -> Raw:
        drivers = [{"name": name} for name in self.some(DRIVERS)]
        for driver in drivers:
            if not self.chance(4):
                driver["allocatable"] = self.of({}, {"count": 0}, {"count": 1}, {"count": 2})
        migrated = ",".join(self.some(PLUGINS))
        metadata = {"name": f"n{number}"}
        if self.chance(2):
            key = "storage.alpha.kubernetes.io/migrated-plugins"
            metadata["annotations"] = {key: migrated}
        return {"kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}

    def expression(self) -> Raw:
        return self.of(
            {"key": HOST, "operator": "In", "values": [f"n{self.upto(NODES - 1)}"]},
            {"key": HOST, "operator": "In", "values": ["n0", "n1"]},
            {"key": HOST, "operator": "In", "values": ["nobody"]},
            {"key": ZONE, "operator": "In", "values": [self.of(*ZONES)]},
            {"key": BETA_ZONE, "operator": "In", "values": [self.of(*ZONES)]},
            {"key": BETA_REGION, "operator": "In", "values": ["eu"]},
            {"key": ZONE, "operator": "NotIn", "values": [self.of(*ZONES)]},
            {"key": "tier", "operator": self.of("Exists", "DoesNotExist")},
            {"key": "tier", "operator": self.of("Gt", "Lt"), "values": [self.of("1", "2")]},
        )

    def affinity(self) -> Raw | None:
        if self.chance(4):
            return None
        terms = []
        for _ in range(self.of(1, 1, 1, 2, 2, 0)):
            term: Raw = {}
            if not self.chance(6):
                count = self.of(1, 1, 2)
                term["matchExpressions"] = [self.expression() for _ in range(count)]
            if self.chance(6):
                name = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
                term["matchFields"] = [name]
            terms.append(term)
        return {"required": {"nodeSelectorTerms": terms}}

    # Classes and drivers

    def classes(self) -> list[Raw]:
        found = []
        for name, provisioner in (
            ("a", "csi.a"),
            ("b", "csi.b"),
            ("local", "kubernetes.io/no-provisioner"),
            ("ebs", "kubernetes.io/aws-ebs"),
            ("now", "csi.a"),
        ):
            mode = "Immediate" if name == "now" else "WaitForFirstConsumer"
            made: Raw = {"provisioner": provisioner, "volumeBindingMode": mode}
            if self.chance(4):
                made["allowedTopologies"] = [
                    {
                        "matchLabelExpressions": [
                            {"key": self.of(ZONE, HOST), "values": [self.of(*ZONES, "n0"), "n1"]}
                            for _ in range(self.of(0, 1, 1, 2))
                        ]
                    }
                    for _ in range(self.of(1, 2))
                ]
            found.append({"kind": "StorageClass", "metadata": {"name": name}, **made})
        return found

    def drivers(self) -> list[Raw]:
        return [
            {
                "kind": "CSIDriver",
                "metadata": {"name": name},
                "spec": {
                    "storageCapacity": not self.chance(3),
                    "preventPodSchedulingIfMissing": self.chance(3),
                },
            }
            for name in self.some([*DRIVERS, "kubernetes.io/aws-ebs"])
        ]

    def capacities(self) -> list[Raw]:
        found = []
        for number in range(self.upto(5)):
            topology = self.of(
                None,
                {},
                {"matchLabels": {ZONE: self.of(*ZONES)}},
                {"matchLabels": {HOST: f"n{self.upto(NODES - 1)}"}},
                {"matchLabels": {ZONE: "eu-west-a", "tier": "1"}},
                {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            )
            made = {"storageClassName": self.of("a", "b", "ebs")}
            made["capacity"] = self.of("0", "200Mi", "300Mi", "1Gi")
            if topology is not None:
                made["nodeTopology"] = topology
            if self.chance(5):
                made["maximumVolumeSize"] = self.of("150Mi", "600Mi")
            metadata = {"name": f"cap{number}", "namespace": SPACE}
            found.append({"kind": "CSIStorageCapacity", "metadata": metadata, **made})
        return found

    # Volumes and claims

    def free_volume(self, number: int) -> Raw:
        metadata: Raw = {"name": f"free{number}", "labels": {"kind": self.of("x", "y")}}
        if self.chance(12):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if self.chance(12):
            key = "volume.beta.kubernetes.io/storage-class"
            metadata["annotations"] = {key: self.of("local", "a")}
        modes = self.of(["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteOncePod"])
        spec: Raw = {
            "capacity": {"storage": self.of("100Mi", "200Mi", "300Mi", "300Mi")},
            "accessModes": modes,
            "storageClassName": self.of("local", "local", "a"),
        }
        if self.chance(8):
            spec["volumeMode"] = "Block"
        if self.chance(10):
            spec["volumeAttributesClassName"] = "gold"
        if (affinity := self.affinity()) is not None:
            spec["nodeAffinity"] = affinity
        if self.chance(4):
            name = f"c{self.upto(CLAIMS - 1)}"
            spec["claimRef"] = {"namespace": self.of(SPACE, SPACE, "other"), "name": name}
            if self.chance(2):
                spec["claimRef"]["uid"] = self.of(f"uid-{name}", "uid-gone")
        status = {"phase": self.of("Available", "Available", "Available", "Released")}
        return {"kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status}

    def bound_volume(self, name: str) -> Raw:
        source = self.of(
            {"csi": {"driver": "csi.a", "volumeHandle": self.of("h1", "h2")}},
            {"csi": {"driver": "csi.b", "volumeHandle": name}},
            {"awsElasticBlockStore": {"volumeID": self.of("vol-1", "aws://z/vol-2", "aws://x/y")}},
            {"awsElasticBlockStore": {"volumeID": "vol-1"}},
            {"gcePersistentDisk": {"pdName": name}},
            {"azureDisk": {"diskURI": name, "kind": self.of("Managed", "managed", "Shared")}},
            {"vsphereVolume": {"volumePath": name}},
            {"nfs": {}},
        )
        labels = {}
        if self.chance(3):
            labels[ZONE] = self.of(*ZONES, "eu-west-a__eu-west-b", "eu-west-a__us-east-a", "a__")
        if self.chance(4):
            labels[BETA_ZONE] = self.of(*ZONES, "eu-west-a__eu-west-b")
        if self.chance(5):
            labels[BETA_REGION] = self.of("eu", "us")
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": [], "storageClassName": "a"} | source
        if (affinity := self.affinity()) is not None:
            spec["nodeAffinity"] = affinity
        metadata = {"name": name, "labels": labels}
        status = {"phase": "Bound"}
        return {"kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status}

    def claim(self, number: int) -> list[Raw]:
        """Return a claim, with the volume it is bound to, if it is and it exists."""
        name = f"c{number}"
        state = self.of("bound", "bound", "bound", "wait", "wait", "wait", "wait", "selected")
        state = self.of("now", "prebound", "lost", "deleting") if self.chance(8) else state
        metadata: Raw = {"name": name, "namespace": SPACE, "uid": f"uid-{name}", "annotations": {}}
        modes = [self.of("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod")]
        spec: Raw = {"accessModes": modes, "storageClassName": self.of("a", "b", "local", "ebs")}
        if not self.chance(10):
            spec["resources"] = {"requests": {"storage": self.of("100Mi", "150Mi", "0.2Gi")}}
        if state == "now":
            spec["storageClassName"] = self.of("now", "gone", "")
        if state in ("bound", "prebound", "lost"):
            spec["volumeName"] = f"pv{number}"
        if state == "bound":
            metadata["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        if state == "selected":
            metadata["annotations"]["volume.kubernetes.io/selected-node"] = self.of("n0", "n1")
        if state == "deleting":
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if self.chance(8):
            spec["volumeMode"] = "Block"
        if self.chance(10):
            spec["selector"] = self.of({"matchLabels": {"kind": "x"}}, {})
        phase = "Lost" if state == "lost" else "Pending"
        made: Raw = {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
        found = [made | {"status": {"phase": phase}}]
        if "volumeName" in spec and not self.chance(8):
            found.append(self.bound_volume(f"pv{number}"))
        return found

    def attachment(self, number: int) -> Raw:
        spec = {
            "attacher": self.of("csi.a", "csi.a", "csi.b"),
            "nodeName": f"n{self.upto(NODES - 1)}",
            "source": self.of({"persistentVolumeName": f"pv{self.upto(CLAIMS - 1)}"}, {}),
        }
        return {"kind": "VolumeAttachment", "metadata": {"name": f"va{number}"}, "spec": spec}

    # Pods

    def pod(self, name: str, objects: list[Raw], *, node: str = "", claims: int = 3) -> Raw:
        volumes: list[Raw] = [
            {"persistentVolumeClaim": {"claimName": f"c{self.upto(CLAIMS)}"}}
            for _ in range(self.upto(claims))
        ]
        if self.chance(5):
            volumes.append({"ephemeral": {}})
            if not self.chance(6):
                objects.append(self.ephemeral_claim(name, node))
        disks = (
            {"gcePersistentDisk": {"pdName": "d", "readOnly": self.chance(2)}},
            {"awsElasticBlockStore": {"volumeID": self.of("vol-1", "vol-2")}},
            {"rbd": {"monitors": self.of(["m1"], ["m1", "m2"]), "image": self.of("i", "j")}},
            {"rbd": {"monitors": ["m2"], "image": "i", "pool": "p", "readOnly": self.chance(2)}},
            {"iscsi": {"iqn": "q", "readOnly": self.chance(2)}},
            {"azureDisk": {"diskURI": "u", "kind": "Managed"}},
            {"vsphereVolume": {"volumePath": "p"}},
        )
        volumes += [disk for disk in disks if self.chance(8)]
        for number, volume in enumerate(volumes):
            volume["name"] = "eph" if "ephemeral" in volume else f"v{number}"
        metadata = {"name": name, "namespace": self.of(SPACE, SPACE, SPACE, "other")}
        metadata = {**metadata, "uid": f"uid-{name}"}
        if any("ephemeral" in volume for volume in volumes):
            metadata["namespace"] = SPACE
        return {"metadata": metadata, "spec": {"volumes": volumes, "nodeName": node}}

    def ephemeral_claim(self, pod: str, node: str) -> Raw:
        owner = "uid-else" if not node and self.chance(6) else f"uid-{pod}"
        metadata = {
            "name": f"{pod}-eph",
            "namespace": SPACE,
            "uid": f"uid-{pod}-eph",
            "ownerReferences": [{"uid": owner, "controller": True}],
        }
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": self.of("a", "local")}
        spec["resources"] = {"requests": {"storage": "150Mi"}}
        return {
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": spec,
            "status": {"phase": "Pending"},
        }


@st.composite
def clusters(draw) -> Raw:
    """Return nodes, placed pods, objects, and the pod to be placed (`pod`)."""
    d = Drawing(draw)
    count = d.upto(NODES, 1)
    objects = [*d.classes(), *d.drivers(), *d.capacities()]
    objects += [d.csi_node(number) for number in range(count) if not d.chance(4)]
    for number in range(CLAIMS):
        objects += d.claim(number)
    objects += [d.free_volume(number) for number in range(d.upto(6))]
    objects += [d.attachment(number) for number in range(d.upto(3))]
    pods = []
    for number in range(d.upto(4)):
        node = f"n{d.upto(count - 1)}"
        pods.append(d.pod(f"b{number}", objects, node=node, claims=2))
    return {
        "nodes": [d.node(number) for number in range(count)],
        "pods": pods,
        "pod": d.pod("p", objects),
        "objects": objects,
    }


@st.composite
def crowded_stocks(draw) -> Raw:
    """Return a cluster whose pod has several claims that want the same few volumes."""
    d = Drawing(draw)
    names = ["n0", "n1", "n2"]
    objects: list[Raw] = [
        {
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    ]
    for number in range(d.upto(3, 2)):
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
        spec["resources"] = {"requests": {"storage": d.of("100Mi", "100Mi", "200Mi")}}
        objects.append(
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"c{number}", "namespace": SPACE, "uid": f"uid-c{number}"},
                "spec": spec,
                "status": {"phase": "Pending"},
            }
        )
    wanted = [{"name": o["metadata"]["name"]} for o in objects[1:]]
    for number in range(d.upto(9, 2)):
        pin = {"key": HOST, "operator": "In", "values": d.of(*([n] for n in names), names[:2])}
        loose = {"key": HOST, "operator": "NotIn", "values": [d.of(*names)]}
        terms = [{"matchExpressions": [d.of(pin, pin, pin, loose)]}]
        spec = {
            "capacity": {"storage": d.of("100Mi", "150Mi", "200Mi")},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        }
        if d.chance(6):
            spec["claimRef"] = {"namespace": SPACE} | d.of(*wanted)
        objects.append(
            {
                "kind": "PersistentVolume",
                "metadata": {"name": f"free{number}"},
                "spec": spec,
                "status": {"phase": "Available"},
            }
        )
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim["name"]}}
        for number, claim in enumerate(wanted)
    ]
    metadata = {"name": "p", "namespace": SPACE, "uid": "uid-p"}
    return {
        "nodes": [{"metadata": {"name": name, "labels": {HOST: name}}} for name in names],
        "pods": [],
        "pod": {"metadata": metadata, "spec": {"volumes": volumes}},
        "objects": objects,
    }
