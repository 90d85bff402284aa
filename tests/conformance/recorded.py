"""The recorded decisions of kube-scheduler v1.37.1, and the objects they were made on."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def read(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(HERE / name, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def scenarios(family: str) -> Iterator[tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """Yield (scenario, decisions by pod) of one family."""
    wanted = {s["id"]: s for s in read("scenarios.jsonl.gz") if s["id"].split("-")[0] == family}
    decisions: dict[str, dict[str, dict[str, Any]]] = {}
    for decision in read("decisions.jsonl.gz"):
        if decision["id"] in wanted:
            decisions.setdefault(decision["id"], {})[decision["pod"]] = decision
    for scenario_id, scenario in wanted.items():
        yield scenario, decisions[scenario_id]


def defaulted(pod: dict[str, Any]) -> dict[str, Any]:
    """Do what the API server does to a pod before a scheduler sees it: requests from limits."""
    spec = pod.get("spec", {})
    holders = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    for holder in holders:
        resources = holder.get("resources") or {}
        if resources.get("limits"):
            requests = resources["limits"] | (resources.get("requests") or {})
            holder["resources"] = resources | {"requests": requests}
    return pod
