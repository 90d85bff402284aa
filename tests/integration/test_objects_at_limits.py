"""What the fuzzer makes at the API's limits, a real API server takes: none of it is made up."""

import json
from typing import Any

import pytest

from testbed.bed import Bed
from tests.fuzz.at_limits.cases import make_case

CASES = range(20)
# What the server itself sets.
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation")


def _sent(kind: str, text: str) -> dict[str, Any]:
    """Return an object as its author would send it."""
    raw: dict[str, Any] = json.loads(text)
    metadata = {k: v for k, v in raw["metadata"].items() if k not in _OF_THE_SERVER}
    spec = {k: v for k, v in raw.get("spec", {}).items() if k != "priority"}
    return {**raw, "apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_the_api_server_takes_what_the_fuzzer_makes(control_plane: Bed, namespace: str, kind: str):
    path = "/api/v1/nodes" if kind == "Node" else f"/api/v1/namespaces/{namespace}/pods"
    taken = 0
    for number in CASES:
        things = [t for t in make_case(7, number, nodes=50).things if t.kind == kind]
        for thing in things[:2]:
            raw = _sent(kind, thing.text)
            if kind == "Pod":
                raw["metadata"]["namespace"] = namespace
            control_plane.client.create(f"{path}?dryRun=All", raw)
            taken += 1
    assert taken >= 4
