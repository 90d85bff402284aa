"""Stories of pods: whom they want near and whom not, ports, gates, priorities, profiles."""

from testbed.client import Object
from testbed.stories.about_nodes import BIG, crumbs, three
from testbed.stories.objects import (
    away,
    near,
    pod,
    priority_class,
    resident,
    with_port,
)
from testbed.stories.story import Step, Story
from testbed.workload import HOSTNAME_LABEL, ZONE_LABEL, make_node

WEB, DB, NOISY = {"app": "web"}, {"app": "db"}, {"app": "noisy"}
LOW, HIGH = priority_class("story-low", 10), priority_class("story-high", 1000)
POLITE = priority_class("story-polite", 1000, preemptionPolicy="Never")


def hermit(name: str, node: str, key: str = HOSTNAME_LABEL) -> Object:
    """Return a pod on a node that wants nobody noisy near."""
    return resident(name, node, affinity=away(key, app="noisy"))


def of_company() -> list[Story]:
    """Return the stories of affinity and ports. Affinity is asked last, so the rest must pass."""
    between = near(HOSTNAME_LABEL, **WEB) | away(HOSTNAME_LABEL, **DB)
    db = [resident(f"db{i}", f"n{i}", labels=DB) for i in (1, 2, 3)]
    web = [resident(f"w{i}", f"n{i}", labels=WEB) for i in (1, 2, 3)]
    zones = [make_node(f"n{i}", cpu="4", zone=z) for i, z in enumerate(("east", "west", "west"), 1)]
    return [
        Story(
            "company comes to nodes that others make impossible",
            nodes=three(),
            residents=db,
            pods={"p": pod(affinity=between)},
            steps=[
                Step("web comes to n1", lambda s: s.put(resident("w1", "n1", labels=WEB))),
                Step("web comes to n2", lambda s: s.put(resident("w2", "n2", labels=WEB))),
            ],
        ),
        Story(
            "company leaves again",
            nodes=three(),
            residents=[*db, *web[:2], hermit("h2", "n2")],
            pods={"p": pod(labels=NOISY, affinity=between)},
            steps=[
                Step("web leaves n1", lambda s: s.end("w1"), renewed=False),
                Step("db leaves n2, where a hermit is", lambda s: s.end("db2")),
            ],
        ),
        Story(
            "a pod becomes company by its label",
            nodes=three(),
            residents=[*db, resident("x", "n1")],
            pods={"p": pod(affinity=between)},
            steps=[Step("it is labelled", lambda s: s.relabel("x", app="web"))],
        ),
        Story(
            "enemies leave nodes that hermits keep",
            nodes=three(),
            residents=[*web, *(hermit(f"h{i}", f"n{i}") for i in (1, 2, 3))],
            pods={"p": pod(labels=NOISY, affinity=away(HOSTNAME_LABEL, **WEB))},
            steps=[
                Step("web leaves n1", lambda s: s.end("w1")),
                Step("web leaves n2", lambda s: s.end("w2")),
            ],
        ),
        Story(
            "an enemy leaves a zone where there is another",
            nodes=zones,
            residents=[*web, hermit("h1", "n1", ZONE_LABEL), hermit("h2", "n2", ZONE_LABEL)],
            pods={"p": pod(labels=NOISY, affinity=away(ZONE_LABEL, **WEB))},
            steps=[
                Step("web leaves n2", lambda s: s.end("w2"), renewed=False),
                Step("web leaves n3", lambda s: s.end("w3")),
                Step("web leaves n1", lambda s: s.end("w1")),
            ],
        ),
        Story(
            "hermits leave nodes that are closed meanwhile",
            nodes=three(),
            residents=[hermit(f"h{i}", f"n{i}") for i in (1, 2, 3)],
            pods={"p": pod(labels=NOISY)},
            steps=[
                Step("n1 is tainted", lambda s: s.taint("n1", "k"), renewed=False),
                Step("the hermit on n1 ends", lambda s: s.end("h1")),
                Step("n2 is cordoned", lambda s: s.cordon("n2"), renewed=False),
                Step("the hermit on n2 ends", lambda s: s.end("h2")),
            ],
        ),
        Story(
            "ports are given back by a node that is too small",
            nodes=three(),
            residents=[with_port(8080, resident(f"x{i}", f"n{i}")) for i in (1, 2, 3)],
            pods={"p": with_port(8080, pod(requests={"memory": "64Gi"}))},
            steps=[
                Step("the pod on n1 ends", lambda s: s.end("x1")),
                Step("the pod on n2 ends", lambda s: s.end("x2")),
            ],
        ),
    ]


def of_importance() -> list[Story]:
    """Return the stories of gates, priorities, promises and profiles."""
    tight = {"cpu": "3900m", "memory": "64Gi"}
    # It would fit on an empty node, and those who keep it out are as important as it is.
    half = {"cpu": "3500m"}
    tops = [
        resident(f"top-{i}", f"n{i}", requests={"cpu": "2"}, priorityClassName="story-high")
        for i in (1, 2, 3)
    ]
    return [
        Story(
            "a gate is opened",
            nodes=three(),
            pods={"p": pod(requests=BIG, schedulingGates=[{"name": "example.com/wait"}])},
            silent=["p"],
            steps=[Step("the gate is opened", lambda s: s.ungate("p"))],
        ),
        Story(
            "an important pod, and lesser ones that come and go",
            nodes=three(),
            things=[LOW, HIGH],
            residents=[resident("low-1", "n1", priorityClassName="story-low"), *tops],
            pods={"p": pod(requests=half, priorityClassName="story-high")},
            steps=[
                Step("the lesser one on n1 ends", lambda s: s.end("low-1")),
                Step(
                    "lesser ones come to n2, one to n1 comes and goes",
                    lambda s: (
                        s.put(resident("low-2", "n2", priorityClassName="story-low")),
                        s.put(resident("low-3", "n1", priorityClassName="story-low")),
                        s.end("low-3"),
                    ),
                ),
            ],
        ),
        Story(
            "an important pod that never preempts",
            nodes=three(),
            things=[LOW, POLITE],
            residents=[
                resident("low-1", "n1", requests={"cpu": "3"}, priorityClassName="story-low"),
                *crumbs(1),
            ],
            pods={"p": pod(requests=tight, priorityClassName="story-polite")},
            steps=[
                Step("the lesser one ends", lambda s: s.end("low-1")),
            ],
        ),
        Story(
            "an unimportant pod below everybody",
            nodes=three(),
            things=[LOW, HIGH],
            residents=[
                *(
                    resident(
                        f"high-{i}", f"n{i}", requests={"cpu": "3"}, priorityClassName="story-high"
                    )
                    for i in (1, 2)
                ),
                resident("low-3", "n3", requests={"cpu": "3"}, priorityClassName="story-low"),
            ],
            pods={"p": pod(requests=tight, priorityClassName="story-low")},
            steps=[
                Step("the pod on n1 ends", lambda s: s.end("high-1")),
                Step("n2 is tainted", lambda s: s.taint("n2", "k"), renewed=False),
                Step("the pod on n3 ends", lambda s: s.end("low-3")),
            ],
        ),
        Story(
            "lesser pods on nodes that can't be helped",
            nodes=[*three(), make_node("n4", cpu="4", labels={"team": "blue"})],
            things=[LOW, HIGH],
            residents=[
                *tops,
                resident("top-4", "n4", requests={"cpu": "2"}, priorityClassName="story-high"),
                *(resident(f"low-{i}", f"n{i}", priorityClassName="story-low") for i in (1, 2, 4)),
            ],
            pods={
                "p": pod(
                    requests=half, nodeSelector={"team": "blue"}, priorityClassName="story-high"
                )
            },
            steps=[
                Step("n1 is meant, too", lambda s: s.label("n1", team="blue")),
                Step("the lesser one on n4 ends", lambda s: s.end("low-4")),
            ],
        ),
        Story(
            "two priorities of one kind of pod",
            nodes=three(),
            things=[LOW, HIGH, POLITE],
            residents=[
                resident("low-1", "n1", requests={"cpu": "1"}, priorityClassName="story-low"),
                *tops,
            ],
            pods={
                "high": pod(requests=half, priorityClassName="story-high"),
                "low": pod(requests=half, priorityClassName="story-low"),
                "polite": pod(requests=half, priorityClassName="story-polite"),
            },
            steps=[
                Step("n2 is cordoned", lambda s: s.cordon("n2"), renewed=False),
                Step("the lesser one ends", lambda s: s.end("low-1")),
            ],
        ),
        Story(
            "room that is promised to another",
            nodes=[make_node("n1", cpu="4"), make_node("n2", cpu="4", unschedulable=True)],
            things=[LOW, HIGH],
            residents=[resident("x", "n1", requests={"cpu": "1"}), resident("y", "n1")],
            pods={
                # It is held up by a claim that is not there, and keeps its promise.
                "vip": pod(
                    requests={"cpu": "3"},
                    priorityClassName="story-high",
                    volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "ghost"}}],
                ),
                "p": pod(requests={"cpu": "3500m"}, priorityClassName="story-low"),
            },
            steps=[
                Step(
                    "the vip is promised n1, and a pod ends",
                    lambda s: (s.nominate("vip", "n1"), s.end("x")),
                ),
                Step(
                    "n2 is opened, and tainted",
                    lambda s: (s.taint("n2", "k"), s.cordon("n2", unschedulable=False), s.end("y")),
                ),
            ],
        ),
        Story(
            "another profile, which knows no taints",
            profile=1,
            nodes=[
                make_node(n, cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}])
                for n in ("n1", "n2")
            ],
            pods={"p": pod(nodeSelector={"team": "blue"}, requests=BIG)},
            steps=[
                Step("n1 is labelled", lambda s: s.label("n1", team="blue")),
                Step("n2 is labelled", lambda s: s.label("n2", team="blue")),
            ],
        ),
        Story(
            "pods of several kinds at once",
            nodes=three(),
            residents=[resident("a", "n1", requests={"cpu": "2"}), *crumbs(1)],
            pods={
                "blue": pod(nodeSelector={"team": "blue"}, requests=BIG),
                "red": pod(nodeSelector={"team": "red"}, requests=BIG),
                "big": pod(requests=BIG),
                "lonely": pod(affinity=near(HOSTNAME_LABEL, app="nobody"), requests=BIG),
            },
            steps=[
                Step("n1 is labelled blue", lambda s: s.label("n1", team="blue")),
                Step("n2 is labelled red", lambda s: s.label("n2", team="red")),
            ],
        ),
    ]
