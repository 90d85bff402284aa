"""What nodes can have thousands of."""

from tests.fuzz.at_limits.api_rules import Raw, resource_name
from tests.fuzz.at_limits.parts import METADATA, Part, Words
from tests.fuzz.at_limits.pod_parts import HOST, ZONE

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _taints(node: Raw, words: Words, count: int) -> None:
    """No two have the same key and the same effect."""
    effects = words.rng.choice((EFFECTS, EFFECTS[1:2], EFFECTS[:1]))
    node["spec"]["taints"] = [
        {
            "key": words.key("k", i),
            "value": words.name("v", i),
            "effect": effects[i % len(effects)],
        }
        for i in range(count)
    ]


def _offers(node: Raw, words: Words, count: int) -> None:
    amounts = {resource_name(words.name("r", i)): str(i) for i in range(count)}
    for where in ("capacity", "allocatable"):
        node["status"][where] = {**node["status"].get(where, {}), **amounts}


def _images(node: Raw, words: Words, count: int) -> None:
    node["status"]["images"] = [
        {
            "names": [f"registry.example.com/{words.name('image', i)}:v{i}"],
            "sizeBytes": 1_000_000 * (1 + i % 900),
        }
        for i in range(count)
    ]


def _conditions(node: Raw, words: Words, count: int) -> None:
    node["status"]["conditions"] = [
        {"type": "Ready", "status": "True"},
        *({"type": words.name("C", i), "status": "False"} for i in range(count)),
    ]


def _attached(node: Raw, words: Words, count: int) -> None:
    node["status"]["volumesInUse"] = [words.name("kubernetes.io/csi/d", i) for i in range(count)]


def _topology(node: Raw, words: Words, count: int) -> None:
    """One domain more for keys that everybody spreads over, and labels besides."""
    found = node["metadata"].setdefault("labels", {})
    found |= {HOST: words.name("h", 0), ZONE: words.name("z", 0)}
    found.update({words.key("l", i): words.name("v", i) for i in range(count)})


NODE_PARTS = (
    *METADATA[:2],
    Part("taints", _taints, limit="taints"),
    Part("offers", _offers, limit="resources"),
    Part("images", _images),
    Part("conditions", _conditions),
    Part("attached volumes", _attached),
    Part("topology", _topology),
)
