"""Stories of nodes: labels, taints, what they offer, and those that come and go."""

from testbed.client import Object
from testbed.stories.objects import named, on_nodes, pod, resident
from testbed.stories.story import Step, Story
from testbed.workload import HOSTNAME_LABEL, make_node

BIG = {"cpu": "20"}
GPU = "example.com/gpu"


def three(zone: str | None = None) -> list[Object]:
    """Return three equal nodes."""
    return [make_node(f"n{i}", cpu="4", zone=zone) for i in (1, 2, 3)]


def crumbs(count: int) -> list[Object]:
    """Return small pods on n3: the end of one lets kube-scheduler look at pods again."""
    return [resident(f"crumb-{i}", "n3") for i in range(count)]


def of_nodes() -> list[Story]:
    """Return the stories."""
    return [
        Story(
            "a label lets a pod see that it is too large",
            nodes=three(),
            pods={"p": pod(nodeSelector={"team": "blue"}, requests=BIG)},
            steps=[
                Step("n1 is labelled", lambda s: s.label("n1", team="blue")),
                Step("n2 is labelled", lambda s: s.label("n2", team="blue")),
            ],
        ),
        Story(
            "a taint on the only node, and room behind it",
            nodes=[make_node("n1", cpu="4")],
            residents=[
                resident("a", "n1", requests={"cpu": "2"}),
                resident("b", "n1", requests={"cpu": "1800m"}),
            ],
            pods={"p": pod(requests={"cpu": "1"})},
            steps=[
                Step("the node is tainted", lambda s: s.taint("n1", "k"), renewed=False),
                Step("a pod there ends", lambda s: s.end("a")),
            ],
        ),
        Story(
            "a node is cordoned while a pod is too large",
            nodes=three(),
            residents=crumbs(2),
            pods={"p": pod(requests=BIG)},
            steps=[
                Step("n1 is cordoned", lambda s: s.cordon("n1"), renewed=False),
                Step("some pod ends", lambda s: s.end("crumb-0")),
                Step("n1 is uncordoned", lambda s: s.cordon("n1", unschedulable=False)),
            ],
        ),
        Story(
            "a cordoned node is opened for a pod that is too large",
            nodes=[
                make_node("n1", cpu="4", unschedulable=True),
                make_node("n2", cpu="4", unschedulable=True),
            ],
            pods={"p": pod(requests=BIG)},
            steps=[
                Step("n1 is uncordoned", lambda s: s.cordon("n1", unschedulable=False)),
                Step("n2 is uncordoned", lambda s: s.cordon("n2", unschedulable=False)),
            ],
        ),
        Story(
            "a taint is taken away from a node that is too small",
            nodes=[
                make_node(n, cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}])
                for n in ("n1", "n2")
            ],
            pods={"p": pod(requests=BIG)},
            steps=[
                Step("n1 loses its taint", lambda s: s.taint("n1")),
                Step("n2 loses its taint", lambda s: s.taint("n2")),
            ],
        ),
        Story(
            "a taint changes into another",
            nodes=[
                make_node(n, cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}])
                for n in ("n1", "n2")
            ],
            pods={"p": pod(requests=BIG, tolerations=[{"key": "other", "operator": "Exists"}])},
            steps=[Step("n1 has a taint that is tolerated", lambda s: s.taint("n1", "other"))],
        ),
        Story(
            "a toleration comes later",
            nodes=[make_node("n1", cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}])],
            pods={"p": pod(requests=BIG)},
            steps=[
                Step(
                    "the pod tolerates the taint",
                    lambda s: s.change(
                        "p", {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}
                    ),
                )
            ],
        ),
        Story(
            "the last node goes, and one comes back",
            nodes=[make_node("n1", cpu="4")],
            residents=[],
            pods={"p": pod(requests=BIG)},
            steps=[
                Step("the node is deleted", lambda s: s.drop_node("n1"), renewed=False),
                Step(
                    "there is another one",
                    lambda s: s.add_node(make_node("n2", cpu="30", unschedulable=True)),
                ),
            ],
        ),
        Story(
            "nodes come one by one",
            pods={"p": pod(nodeSelector={"team": "blue"}, requests=BIG)},
            steps=[
                Step("the first", lambda s: s.add_node(make_node("n1", cpu="4"))),
                Step(
                    "one that is meant",
                    lambda s: s.add_node(make_node("n2", cpu="4", labels={"team": "blue"})),
                ),
                Step(
                    "another one",
                    lambda s: s.add_node(make_node("n3", cpu="4", labels={"team": "blue"})),
                ),
            ],
        ),
        Story(
            "nodes leave one by one",
            nodes=three(),
            residents=crumbs(3),
            pods={"p": pod(requests=BIG)},
            steps=[
                Step("n1 is deleted", lambda s: s.drop_node("n1"), renewed=False),
                Step("some pod ends", lambda s: s.end("crumb-0")),
                Step("n2 is deleted", lambda s: s.drop_node("n2"), renewed=False),
                Step("some pod ends", lambda s: s.end("crumb-1")),
            ],
        ),
        Story(
            "a label is taken away again",
            nodes=[*three(), make_node("n4", cpu="4", labels={"team": "blue"})],
            residents=crumbs(2),
            pods={"p": pod(nodeSelector={"team": "blue"}, requests=BIG)},
            steps=[
                Step("n4 loses its label", lambda s: s.label("n4", team=None), renewed=False),
                Step("some pod ends", lambda s: s.end("crumb-0")),
                Step("n1 gets one", lambda s: s.label("n1", team="blue")),
            ],
        ),
        Story(
            "an expression that a label meets",
            nodes=three(),
            pods={"p": pod(affinity=on_nodes("rank", "Gt", "5"), requests=BIG)},
            steps=[
                Step("n1 is of rank 7", lambda s: s.label("n1", rank="7")),
                Step("n2 is of rank 9", lambda s: s.label("n2", rank="9")),
            ],
        ),
        Story(
            "a node that is named comes, and is too small",
            nodes=three(),
            pods={"p": pod(affinity=named("n9"), requests=BIG)},
            steps=[Step("n9 comes", lambda s: s.add_node(make_node("n9", cpu="4")))],
        ),
        Story(
            "a node that is named is cordoned, and opened",
            nodes=[*three(), make_node("n9", cpu="4", unschedulable=True)],
            pods={"p": pod(affinity=named("n9"), requests=BIG)},
            steps=[Step("n9 is opened", lambda s: s.cordon("n9", unschedulable=False))],
        ),
        Story(
            "pods that end leave too little room",
            nodes=[make_node("n1", cpu="4"), make_node("n2", cpu="2", pods=1)],
            residents=[
                resident("a", "n1", requests={"cpu": "3"}),
                resident("b", "n2", requests={"cpu": "2"}),
            ],
            pods={"p": pod(requests={"cpu": "3900m", "memory": "64Gi"})},
            steps=[
                Step("the pod on n1 ends", lambda s: s.end("a")),
                Step("the pod on n2 ends", lambda s: s.end("b")),
            ],
        ),
        Story(
            "a node offers more of one of two resources",
            nodes=[make_node("n1", cpu="4", memory="1Gi"), make_node("n2", cpu="2", memory="1Gi")],
            residents=[
                resident("a", "n1", requests={"cpu": "3500m"}),
                resident("b", "n1", requests={"memory": "512Mi"}),
            ],
            pods={"p": pod(requests={"cpu": "3", "memory": "900Mi"})},
            steps=[
                Step("cpu is free on n1", lambda s: s.end("a")),
                Step(
                    "n2 has more cpu",
                    lambda s: s.offer("n2", cpu="8", memory="512Mi", pods="110"),
                    renewed=False,
                ),
                Step(
                    "a pod on n1 comes and goes", lambda s: (s.put(resident("c", "n1")), s.end("c"))
                ),
            ],
        ),
        Story(
            "a device comes to a node that is full",
            nodes=[make_node("n1", cpu="4"), make_node("n2", cpu="4")],
            residents=[
                resident("a", "n1", requests={"cpu": "3800m"}),
                resident("b", "n2", requests={"cpu": "3800m"}),
            ],
            pods={"p": pod(requests={GPU: "1", "cpu": "1"})},
            steps=[
                Step("n1 has a device", lambda s: s.offer("n1", **{GPU: "1"})),
                Step("n2 has one, too", lambda s: s.offer("n2", **{GPU: "1"})),
            ],
        ),
        Story(
            "a selector of a host that is full, and then tainted",
            nodes=three(),
            residents=[resident("a", "n2", requests={"cpu": "3"}), resident("b", "n2")],
            pods={"p": pod(nodeSelector={HOSTNAME_LABEL: "n2"}, requests={"cpu": "3900m"})},
            steps=[
                Step("n2 is tainted", lambda s: s.taint("n2", "k"), renewed=False),
                Step("a pod on n2 ends", lambda s: s.end("a")),
                Step("n2 loses its taint", lambda s: s.taint("n2")),
            ],
        ),
    ]
