"""Stories of pods that are spread. Whoever is spread well enough still has nobody to be near to."""

from testbed.stories.about_nodes import three
from testbed.stories.objects import near, pod, resident, spread
from testbed.stories.story import Step, Story
from testbed.workload import HOSTNAME_LABEL, ZONE_LABEL, make_node

WEB = {"app": "web"}
LONELY = near(HOSTNAME_LABEL, app="nobody")


def of_spreading() -> list[Story]:
    """Return the stories."""
    zones = [make_node(f"n{i}", cpu="4", zone=z) for i, z in enumerate(("east", "west", "west"), 1)]
    two = [resident("w1", "n1", labels=WEB), resident("w2", "n1", labels=WEB)]
    waiting = pod(labels=WEB, affinity=LONELY, topologySpreadConstraints=spread(ZONE_LABEL))
    return [
        Story(
            "a zone has too many, and then not",
            nodes=zones,
            residents=two,
            pods={"p": waiting},
            steps=[
                Step("web leaves n1", lambda s: s.end("w1"), renewed=False),
                Step("web leaves n1 for good", lambda s: s.end("w2")),
            ],
        ),
        Story(
            "a node joins a zone, and another one joins none",
            nodes=[*three(zone="east"), make_node("n4", cpu="4")],
            pods={"p": waiting},
            steps=[
                Step("n4 is of the west", lambda s: s.label("n4", **{ZONE_LABEL: "west"})),
                Step("n5 comes", lambda s: s.add_node(make_node("n5", cpu="4"))),
            ],
        ),
        Story(
            "fewer zones than there should be",
            nodes=zones,
            residents=two[:1],
            pods={
                "p": pod(
                    labels=WEB,
                    affinity=LONELY,
                    topologySpreadConstraints=spread(ZONE_LABEL, minDomains=3),
                )
            },
            steps=[
                Step("web comes to n2", lambda s: s.put(resident("w2", "n2", labels=WEB))),
                Step("web leaves n1", lambda s: s.end("w1")),
            ],
        ),
        Story(
            "tainted nodes do not count",
            nodes=zones,
            residents=two[:1],
            pods={
                "p": pod(
                    labels=WEB,
                    affinity=LONELY,
                    topologySpreadConstraints=spread(ZONE_LABEL, nodeTaintsPolicy="Honor"),
                )
            },
            steps=[
                Step("n2 is tainted", lambda s: s.taint("n2", "k")),
                Step("n3 is tainted", lambda s: s.taint("n3", "k")),
            ],
        ),
    ]
