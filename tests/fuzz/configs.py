"""Configurations that are nearly right, made by chance; `trying` has what must come of them."""

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from k8s_scheduler.api.config.defaults_file import defaults_file
from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from tests.conformance.oracle.gen import scenarios
from tests.fuzz.mutations import deep, mutated, odd_scalar
from tests.fuzz.trying import KNOWN, tried

ROOT = Path(__file__).parents[2]
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
EXTRAS = {
    "apiVersion": "k8s-scheduler.io/v1alpha1",
    "kind": "SchedulerExtras",
    "batch": {"maxPods": 8, "maxMilliseconds": 5},
    "preemption": {"maxVictimsPerMinute": 30},
    "reasons": {"maxPerSecond": 5},
    "nodeOwnership": {
        "nodeSelector": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "own", "operator": "In", "values": ["us"]},
                        {"key": "size", "operator": "Gt", "values": ["3"]},
                        {"key": "gone", "operator": "DoesNotExist"},
                    ],
                    "matchFields": [
                        {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}
                    ],
                },
                {"matchExpressions": [{"key": "example.com/own", "operator": "Exists"}]},
            ]
        }
    },
    "lastGood": {"configMap": "kube-system/last-good"},
    "rivals": {"action": "Refuse", "namespaces": ["kube-system", "other"]},
    "podLimits": encode(PodLimits()),
    "nodeLimits": encode(NodeLimits()),
}


def seeds() -> list[dict[str, Any]]:
    """Return configurations that are right."""
    recorded = (ROOT / "tests/unit/api/config/recorded_configurations.jsonl").read_text("utf-8")
    found = [HEAD | json.loads(line)["configuration"] for line in recorded.splitlines()]
    found += [s["config"] for s in scenarios(3, 6) if s.get("config")]
    found.append(next(iter(yaml.safe_load_all(defaults_file(KNOWN)))))
    found.append(
        next(iter(yaml.safe_load_all((ROOT / "manifests/config.yaml").read_text("utf-8"))))
    )
    return found


def configurations(seed: int, count: int) -> Iterator[str | bytes]:
    """Yield texts that are nearly configurations."""
    rng = random.Random(seed)
    right = seeds()
    for _ in range(count):
        tree = mutated(rng.choice(right), rng, times=rng.choice((0, 1, 1, 2, 3, 8)))
        if rng.random() < 0.5 and isinstance(tree, dict):
            # Most accidents happen to be at the root otherwise, and end the reading early.
            tree |= HEAD
        text = _text(tree, rng)
        if rng.random() < 0.3:
            text = _two_documents(text, rng)
        yield rng.choice(_SPOILERS)(text, rng) if rng.random() < 0.35 else text


def _text(tree: Any, rng: random.Random) -> str:
    try:
        if rng.random() < 0.4:
            return json.dumps(tree, ensure_ascii=rng.random() < 0.5)
        return str(yaml.safe_dump(tree, sort_keys=False, allow_unicode=rng.random() < 0.5))
    except (RecursionError, ValueError, yaml.YAMLError):
        # The writer can't do it: the reader is to be tried, so something else is written.
        return f"{json.dumps(HEAD)[:-1]}, profiles: {odd_scalar(rng)!r}}}"


def _two_documents(text: str, rng: random.Random) -> str:
    extras = mutated(EXTRAS, rng, times=rng.choice((0, 0, 1, 2, 4)))
    other = _text(extras, rng)
    first, second = rng.sample((text, other), 2)
    parts = [first, second, *([other] if rng.random() < 0.1 else [])]
    return "\n---\n".join(parts)


# What happens to text


def _cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _insert(text: str, rng: random.Random) -> str:
    rubbish = rng.choice(
        (
            "\t",
            "\x00",
            "\u2028",
            ": ",
            "- ",
            "}",
            "[",
            "&a ",
            "*a",
            "*nobody",
            "!!python/object:os.system ",
            "!!binary x",
            "<<: *a\n",
            "<<: 3\n",
            "? [a]\n",
            "%YAML 9.9\n",
            "'",
            '"',
            "|\n",
            "#",
            "\r",
            "---",
            "...",
        )
    )
    at = rng.randrange(len(text) + 1)
    return text[:at] + rubbish + text[at:]


def _laughs(text: str, rng: random.Random) -> str:
    """Add anchors that would grow without end."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    for i in range(1, rng.choice((3, 9, 40))):
        inner = ", ".join([f"*a{i - 1}"] * 9)
        lines.append(f"a{i}: &a{i} [{inner}]")
    return text + "\n" + "\n".join(lines) + "\n"


def _merges(text: str, rng: random.Random) -> str:
    lines = ["m0: &m0 {x: 1, y: 2}"]
    lines += [
        f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}, *m{i - 1}], z{i}: 1}}"
        for i in range(1, rng.choice((3, 9, 40)))
    ]
    return text + "\n" + "\n".join(lines) + "\n"


def _itself(text: str, _rng: random.Random) -> str:
    return f"{text}\nprofiles: &me\n- plugins: *me\n"


def _nested(text: str, rng: random.Random) -> str:
    depth = rng.choice((50, 100, 500, 3000))
    opened = rng.choice(("[", "{a: ", "- "))
    return f"{text}\nextenders: {opened * depth}\n"


def _bytes(text: str, rng: random.Random) -> bytes:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice((1, 5, 50))):
        data[rng.randrange(len(data)) if data else 0 : 0] = bytes([rng.randrange(256)])
    return bytes(data)


def _long(text: str, rng: random.Random) -> str:
    line = rng.choice(("x: 1\n", "# c\n", "extenders: []\n", "- a\n", "  - name: NodeName\n"))
    return text + line * rng.choice((100, 20_000))


def _deepened(_text_: str, rng: random.Random) -> str:
    return _text({**HEAD, "profiles": deep(rng, rng.choice((10, 63, 64, 65, 400)))}, rng)


_SPOILERS: tuple[Callable[[str, random.Random], str | bytes], ...] = (
    _cut,
    _cut,
    _insert,
    _insert,
    _insert,
    _laughs,
    _merges,
    _itself,
    _nested,
    _bytes,
    _long,
    _deepened,
)


def run(seed: int, count: int, *, keep: Callable[[str, bytes, str], object]) -> dict[str, float]:
    """Try so many; `keep(name, data, problem)` is called for what breaks the promise."""
    figures: dict[str, float] = {
        "tried": 0,
        "loaded": 0,
        "started_with_last_good": 0,
        "failures": 0,
        "worst_cpu_seconds": 0.0,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        for number, text in enumerate(configurations(seed, count)):
            outcome = tried(text, path)
            figures["tried"] += 1
            figures["loaded"] += outcome.loaded
            figures["started_with_last_good"] += outcome.started_with_last_good
            figures["worst_cpu_seconds"] = max(figures["worst_cpu_seconds"], outcome.cpu_seconds)
            if outcome.problem:
                figures["failures"] += 1
                keep(f"config-{seed}-{number}.yaml", path.read_bytes(), outcome.problem)
    return figures
