"""Seeds that run with every `make test`; thousands more with `make simulate`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.run import simulate

ROOT = Path(__file__).parents[2]
SEEDS = 200
PER_TEST = 20
TRACE = (
    "from tests.simulation.run import simulate; "
    "print(*(simulate(s, traced=True).trace for s in {seeds}))"
)


@pytest.mark.parametrize("first", range(1, SEEDS + 1, PER_TEST))
def test_no_seed_breaks_a_rule(first):
    results = [simulate(seed) for seed in range(first, first + PER_TEST)]
    broken = [
        "\n".join([f"seed {r.seed}, again with: {r.replay}", *map(str, r.violations)])
        for r in results
        if r.violations
    ]
    assert not broken, "\n" + "\n".join(broken)
    # A world in which nothing happens breaks no rule either.
    assert sum(r.counts.get("bound", 0) for r in results) > 5 * PER_TEST
    assert sum(r.counts.get("terms", 0) for r in results) > PER_TEST
    assert sum(sum(r.faults.values()) for r in results) > 10 * PER_TEST


def test_a_seed_alone_leads_to_the_same_run_whatever_the_hash_seed():
    seeds = (3, 14, 15)
    here = " ".join(simulate(seed, traced=True).trace for seed in seeds)
    for hash_seed in ("1", "2718"):
        elsewhere = subprocess.run(
            [sys.executable, "-c", TRACE.format(seeds=seeds)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert elsewhere.stdout.strip() == here


def test_different_seeds_lead_to_different_runs():
    assert simulate(3, traced=True).trace != simulate(4, traced=True).trace


def test_two_processes_find_what_one_finds_and_say_how_to_see_it_again():
    command = [sys.executable, "-m", "tests.simulation", "--planted", "missing_barrier"]
    found = [
        subprocess.run(
            [*command, "--seeds", "2", "--jobs", jobs],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
        )
        for jobs in ("1", "2")
    ]
    assert [run.returncode for run in found] == [1, 1]
    said = [[line for line in run.stdout.splitlines() if "CPU" not in line] for run in found]
    assert said[0] == said[1]
    assert "  again with: make simulate SEEDS=1 FIRST_SEED=1 VERBOSE=1" in said[0]
