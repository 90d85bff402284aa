"""Sequences in, one plain scenario a step out (id `SEQUENCE/STEP`), for the oracle.

python -m tests.conformance.oracle.flatten < sequences.jsonl > scenarios.jsonl
"""

import json
import sys
from collections.abc import Iterator
from typing import Any


def flattened(sequence: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the state of the cluster at each step, as a scenario."""
    state = {_key(o["kind"], o["metadata"]): o for o in sequence["objects"]}
    for number, step in enumerate(sequence["steps"]):
        for o in step["apply"]:
            state[_key(o["kind"], o["metadata"])] = o
        for removal in step["delete"]:
            state.pop(_key(removal["kind"], removal), None)
        scenario = {
            "id": f"{sequence['id']}/{number}",
            "objects": list(state.values()),
            "pending": step["pending"],
        }
        if "config" in sequence:
            scenario["config"] = sequence["config"]
        yield scenario


def _key(kind: str, identity: dict[str, Any]) -> tuple[str, str, str]:
    return kind, identity.get("namespace", ""), identity["name"]


def main() -> None:
    """Turn standard input into standard output."""
    for line in sys.stdin:
        for scenario in flattened(json.loads(line)):
            print(json.dumps(scenario, separators=(",", ":")))


if __name__ == "__main__":
    main()
