"""Stories of volumes: claims, classes, zones, limits."""

from testbed.client import Object
from testbed.stories.about_nodes import BIG, crumbs, three
from testbed.stories.objects import (
    CLAIMS,
    CLASSES,
    CSI_NODES,
    DRIVER,
    VOLUMES,
    claim,
    csi_node,
    near,
    pod,
    resident,
    storage_class,
    using,
    volume,
)
from testbed.stories.story import Step, Story
from testbed.workload import HOSTNAME_LABEL, ZONE_LABEL, make_node

NOW = (CLASSES, storage_class("now", DRIVER, late=False))
LATE = (CLASSES, storage_class("late"))


def bound(name: str, volume_name: str, **more: str) -> tuple[str, Object]:
    """Return a claim that is bound to a volume."""
    return CLAIMS, claim(name, "late", volume=volume_name, **more)


def with_disk(made: Object) -> Object:
    """Return a pod that writes to a disk which only one node can have at a time."""
    made["spec"]["volumes"] = [{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}]
    return made


def of_volumes() -> list[Story]:
    """Return the stories."""
    zones = [make_node("n1", cpu="4", zone="east"), make_node("n2", cpu="4", zone="west")]
    return [
        Story(
            "a claim comes, and is not bound",
            nodes=three(),
            things=[NOW],
            pods={"p": using("imm")},
            steps=[Step("the claim is created", lambda s: s.create(CLAIMS, claim("imm", "now")))],
        ),
        Story(
            "a claim comes before its class",
            nodes=three(),
            pods={"p": using("c")},
            steps=[
                Step("the claim is created", lambda s: s.create(CLAIMS, claim("c", "late"))),
                Step("the class is created", lambda s: s.create(*LATE)),
            ],
        ),
        Story(
            "a claim whose volume is too far away",
            nodes=three(),
            things=[LATE],
            pods={"p": using("c")},
            steps=[
                Step(
                    "the claim is created, bound",
                    lambda s: s.create(CLAIMS, claim("c", "late", volume="pv"), {"phase": "Bound"}),
                ),
                Step(
                    "the volume is there",
                    lambda s: s.create(VOLUMES, volume("pv", only_on="ghost")),
                ),
            ],
        ),
        Story(
            "two claims come one after the other",
            nodes=three(),
            things=[NOW],
            pods={"p": using("first", "second")},
            steps=[
                Step("the first", lambda s: s.create(CLAIMS, claim("first", "now"))),
                Step("the second", lambda s: s.create(CLAIMS, claim("second", "now"))),
            ],
        ),
        Story(
            "volumes that can be bound come to nodes that are closed",
            nodes=three(),
            things=[LATE, (CLAIMS, claim("c", "late"))],
            pods={"p": using("c")},
            steps=[
                Step("n1 is cordoned", lambda s: s.cordon("n1"), renewed=False),
                Step(
                    "a volume comes to n1",
                    lambda s: s.create(VOLUMES, volume("one", only_on="n1")),
                ),
                Step("n2 is tainted", lambda s: s.taint("n2", "k"), renewed=False),
                Step(
                    "a volume comes to n2",
                    lambda s: s.create(VOLUMES, volume("two", only_on="n2")),
                ),
            ],
        ),
        Story(
            "a small volume, then one that is large enough but out of reach",
            nodes=three(),
            things=[LATE, (CLAIMS, claim("c", "late")), (VOLUMES, volume("small", size="10Mi"))],
            pods={"p": using("c")},
            steps=[
                Step(
                    "n1 is tainted, a volume comes",
                    lambda s: (
                        s.taint("n1", "k"),
                        s.create(VOLUMES, volume("far", only_on="ghost")),
                    ),
                ),
            ],
        ),
        Story(
            "a volume of another zone",
            nodes=zones,
            things=[LATE, (VOLUMES, volume("pv", labels={ZONE_LABEL: "north"})), bound("c", "pv")],
            pods={"p": using("c", requests=None)},
            steps=[
                Step(
                    "a tainted node of the zone comes",
                    lambda s: s.add_node(
                        make_node(
                            "n3",
                            cpu="4",
                            zone="north",
                            taints=[{"key": "k", "effect": "NoSchedule"}],
                        )
                    ),
                ),
                Step(
                    "n2 moves, and is cordoned",
                    lambda s: (s.cordon("n2"), s.label("n2", **{ZONE_LABEL: "south"})),
                ),
            ],
        ),
        Story(
            "a claim for one pod only",
            nodes=three(),
            things=[
                LATE,
                (VOLUMES, volume("pv", mode="ReadWriteOncePod", only_on="n9")),
                bound("c", "pv", mode="ReadWriteOncePod"),
            ],
            residents=[_holder()],
            pods={"p": using("c")},
            steps=[Step("its user ends", lambda s: s.end("holder"))],
        ),
        Story(
            "more volumes than nodes take",
            nodes=three(),
            things=[
                LATE,
                *((CSI_NODES, csi_node(f"n{i}", 0)) for i in (1, 2, 3)),
                (VOLUMES, volume("pv")),
                bound("c", "pv"),
            ],
            pods={"p": using("c", requests={"memory": "16Gi"})},
            steps=[
                Step("n1 is cordoned", lambda s: s.cordon("n1"), renewed=False),
                Step(
                    "n2 is tainted and takes one",
                    lambda s: (s.taint("n2", "k"), s.patch(CSI_NODES, "n2", csi_node("n2", 1))),
                ),
            ],
        ),
        Story(
            "a disk that others write to",
            nodes=three(),
            residents=[with_disk(resident(f"d{i}", f"n{i}")) for i in (1, 2, 3)],
            pods={"p": with_disk(pod(affinity=near(HOSTNAME_LABEL, app="nobody")))},
            steps=[
                Step("the pod on n1 ends", lambda s: s.end("d1")),
                Step("the pod on n2 ends", lambda s: s.end("d2")),
            ],
        ),
        Story(
            "a claim is deleted again",
            nodes=three(),
            things=[LATE, (VOLUMES, volume("pv")), bound("c", "pv")],
            residents=crumbs(1),
            pods={"p": using("c", requests=BIG)},
            steps=[
                Step("the claim is deleted", lambda s: s.delete(CLAIMS, "c"), renewed=False),
                Step("some pod ends", lambda s: s.end("crumb-0")),
            ],
        ),
    ]


def _holder() -> Object:
    made = using("c")
    made["metadata"]["name"] = "holder"
    made["spec"] |= {"nodeName": "n1", "schedulerName": "nobody"}
    return made
