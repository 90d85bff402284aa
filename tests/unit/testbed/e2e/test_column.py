"""The cluster that the specs find, and how their results come in."""

import json
import subprocess
import threading
from pathlib import Path

import pytest
import yaml

from testbed.binaries import Toolset
from testbed.e2e import column
from testbed.e2e.column import (
    SERVED,
    STAGES,
    Task,
    configuration,
    make_agents,
    make_cluster,
)
from testbed.e2e.suite import Choice


def result(name):
    return json.dumps({"name": name, "state": "passed", "seconds": 1, "message": ""}) + "\n"


class SuiteOnBed:
    """A bed whose suite writes one text a second, and ends after the last."""

    kubeconfig = Path("/kubeconfig")

    def __init__(self, texts):
        self._texts = list(texts)
        self._results: Path | None = None
        self.started = 0

    def add_program(self, name, command):
        (flag,) = [flag for flag in command if flag.startswith("--results=")]
        self._results = Path(flag.removeprefix("--results="))

    def start_program(self, name):
        self.started += 1

    def wait_program(self, name, *, timeout_seconds):
        if not self._texts:
            return 0
        with self._results.open("a") as file:
            file.write(self._texts.pop(0))
        raise subprocess.TimeoutExpired(name, timeout_seconds)


@pytest.fixture
def task(tmp_path):
    choice = Choice(seed=1, limit_seconds=600)
    return Task(program=Path("/suite"), choice=choice, chosen=("a", "b"), folder=tmp_path)


def run_suite(texts, task, stop=None):
    bed, told = SuiteOnBed(texts), []
    specs = column._run_suite(
        bed,
        task,
        on_spec=lambda spec, number: told.append((number, spec.name)),
        stop=stop or threading.Event(),
    )
    assert bed.started == 1
    return [spec.name for spec in specs], told


def test_each_chosen_spec_is_told_once_as_it_ends(task):
    texts = [result("a"), "", result("not chosen"), result("b")]
    assert run_suite(texts, task) == (["a", "b"], [(1, "a"), (2, "b")])


def test_a_result_counts_when_its_line_is_whole(task):
    line = result("a")
    assert run_suite([line[:9], line[9:]], task) == (["a"], [(1, "a")])
    (task.folder / "results.jsonl").unlink()
    assert run_suite([line[:9]], task) == ([], [])


def test_a_suite_that_is_told_to_stop_is_not_waited_for(task):
    stop = threading.Event()
    stop.set()
    assert run_suite([result("a")], task, stop) == ([], [])


def test_kwok_plays_its_own_stages_and_ours(tmp_path, monkeypatch):
    stock = tmp_path / "stock.yaml"
    stock.write_text("kind: Stage\nmetadata: {name: stock}\n")
    monkeypatch.setattr(column, "find_tools", lambda _: Toolset(binaries={}, stages=stock))
    tools = column._with_own_stages(["kwok"], tmp_path)
    names = [stage["metadata"]["name"] for stage in yaml.safe_load_all(tools.stages.read_text())]
    assert names == ["stock", "node-allocatable", "pod-delete-after-sleep"]


def test_our_stages_go_before_those_of_kwok():
    stages = list(yaml.safe_load_all(STAGES.read_text("utf-8")))
    assert len(stages) == 2
    assert all(stage["kind"] == "Stage" and stage["spec"]["weight"] > 0 for stage in stages)


def test_nodes_differ_in_name_and_address_and_lie_in_two_zones():
    nodes = make_cluster()
    addresses = [
        address["address"]
        for node in nodes
        for address in node["status"]["addresses"]
        if address["type"] == "InternalIP"
    ]
    assert len(set(addresses)) == len({node["metadata"]["name"] for node in nodes}) == 4
    assert all(address.startswith("127.") for address in addresses)
    assert "127.0.0.1" not in addresses
    zones = {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes}
    assert len(zones) == 2
    assert all("ephemeral-storage" in node["status"]["allocatable"] for node in nodes)


def test_no_scheduler_under_test_places_the_agents_of_a_node():
    agents = make_agents("node-1")
    assert len({agent["metadata"]["name"] for agent in agents}) == 3
    assert all(agent["spec"]["schedulerName"] != SERVED for agent in agents)
    assert all("requests" not in str(agent["spec"]) for agent in agents)


def test_the_shipped_configuration_serves_kube_scheduler_s_name():
    config = yaml.safe_load(configuration())
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["default-scheduler"]
    assert config["leaderElection"]["resourceName"] == "k8s-scheduler"
