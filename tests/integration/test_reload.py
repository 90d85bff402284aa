"""The configuration changes while the daemon runs: good and bad, by ConfigMap and by file.

`RELOADS=200/50` (good/bad) in the environment runs the great count; `make reloads` does.
"""

import itertools
import json
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import pytest
import yaml

from testbed.daemon import PROGRAM, Daemon
from testbed.installation import NAMESPACE, install, load_manifest
from testbed.sandbox import Sandbox
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import (
    bound,
    events,
    no_complaints,
    node_of,
    refusals,
    running,
    stand_up,
    wait_bound,
)

logger = logging.getLogger(__name__)

GOOD, BAD = map(int, os.environ.get("RELOADS", "20/5").split("/"))
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
OWN, SAVED = "k8s-scheduler", "k8s-scheduler-last-good"
RELOADS = 'k8s_scheduler_config_reloads_total{{result="{}"}}'
BUSY = "alpha", "beta", "gamma"
LOTS = 40
# So that a long run makes some thousands of pods, and not more than can be removed in good time.
PAUSE_SECONDS = 0.05 if GOOD <= 20 else 0.25


def configuration(*names: str, color: str = "", tier: str = "", **more) -> str:
    """Return a configuration whose profiles go to nodes of a colour, and rather to those of a tier.

    A decision that took one from an older configuration would be seen by the node it chose.
    """
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [has(color=color)]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": has(tier=tier)}
        ],
    }
    profiles = [
        {
            "schedulerName": name,
            "plugins": {
                "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity"}]}
            },
            "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}],
        }
        for name in names
    ]
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
    }
    return yaml.safe_dump(head | {"profiles": profiles} | more)


def has(**labels: str) -> dict:
    return {
        "matchExpressions": [
            {"key": key, "operator": "In", "values": [value]} for key, value in labels.items()
        ]
    }


def simple(*names: str, **more) -> str:
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name} for name in names],
    }
    return yaml.safe_dump(head | more)


@contextmanager
def config_maps(sandbox: Sandbox, text: str) -> Iterator[None]:
    """Have the two ConfigMaps that the shipped role speaks of."""
    install(sandbox.bed)
    (saved,) = load_manifest("last-good.yaml")
    sandbox.client.create(MAPS, {"metadata": {"name": OWN}, "data": {"config.yaml": text}})
    sandbox.client.create(MAPS, saved)
    try:
        yield
    finally:
        for name in (OWN, SAVED):
            if sandbox.find(f"{MAPS}/{name}") is not None:
                sandbox.client.delete(f"{MAPS}/{name}")


def put(sandbox: Sandbox, text: str) -> None:
    sandbox.client.patch(f"{MAPS}/{OWN}", {"data": {"config.yaml": text}})


def reloads(daemon: Daemon, result: str) -> float:
    return daemon.metrics()[RELOADS.format(result)]


def current(daemon: Daemon) -> dict:
    return json.loads(daemon.get("/configz")[1])["k8s-scheduler.io"]


def config_events(sandbox: Sandbox, since: set[str]) -> dict[str, str]:
    """Return the notes of Events about our ConfigMap by their names, without those before."""
    items = sandbox.client.list(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")
    return {
        event["metadata"]["name"]: event["note"]
        for event in items
        if event["reason"] == "InvalidConfiguration"
        and (event["regarding"]["kind"], event["regarding"]["name"]) == ("ConfigMap", OWN)
        and event["metadata"]["name"] not in since
    }


class Load:
    """Creates pods of all names without a pause, until told to stop."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.created = 0

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            pods = [
                make_pod(
                    f"p{number}-{name}",
                    cpu="1m",
                    memory="1Mi",
                    scheduler_name=name,
                    labels={"lot": str(number % LOTS)},
                )
                for name in BUSY
            ]
            self._sandbox.create_pods(pods)
            self.created += len(pods)
            self._stop.wait(PAUSE_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()

    def clear_away(self) -> None:
        """Remove the pods in lots: all of them in one request take longer than a request may."""
        for lot in range(LOTS):
            query = {"labelSelector": f"lot={lot}", "gracePeriodSeconds": "0"}
            self._sandbox.client.request("DELETE", f"{self._sandbox.path}/pods", query=query)


@pytest.mark.timeout(300 + 10 * (GOOD + BAD))
def test_good_and_bad_reloads_under_load_lose_no_pod_and_mix_no_configurations(sandbox):
    nodes = [
        make_node(f"{color}-{tier}", cpu="64", pods=20000, labels={"color": color, "tier": tier})
        for color in ("red", "blue")
        for tier in ("x", "y")
    ]
    # Never red-y, never blue-x: these are half of one and half of the other.
    ways = [
        configuration("alpha", "beta", color="red", tier="x"),
        configuration("gamma", "alpha", color="blue", tier="y", podInitialBackoffSeconds=2),
    ]
    last = configuration(*BUSY, color="red", tier="x")
    steps = [("applied", ways[i % 2] + f"# {i}\n") for i in range(1, GOOD)]
    for i in range(BAD):
        bad = f"{ways[0]}parallelism: -{i + 1}\npodMaxBackofSeconds: {i}\n"
        steps.insert((i + 1) * len(steps) // (BAD + 1), ("refused", bad))
    with config_maps(sandbox, ways[0]):
        before = set(config_events(sandbox, set()))
        stand_up(sandbox, *nodes)
        with running(sandbox.bed, config_map=f"{NAMESPACE}/{OWN}", flags=()) as daemon:
            with Load(sandbox) as load:
                done = {"applied": 0, "refused": 0}
                for result, text in [*steps, ("applied", last)]:
                    put(sandbox, text)
                    done[result] += 1
                    eventually(lambda: reloads(daemon, result) == done[result], 30, text)  # noqa: B023
                eventually(lambda: len(bound(sandbox)) > 10, 30, "pods are bound all the while")
            assert done == {"applied": GOOD, "refused": BAD}
            placed = wait_bound(sandbox, load.created, 120)
            assert set(placed.values()) == {"red-x", "blue-y"}
            told = eventually(
                lambda: notes if len(notes := config_events(sandbox, before)) >= BAD else None,
                30,
                "an Event for each bad one",
            )
            assert len(told) == BAD
            for i in range(BAD):
                (note,) = (n for n in told.values() if f": -{i + 1}:" in n)
                assert 'did you mean "podMaxBackoffSeconds"?' in note
                assert "2 errors" in note
            assert daemon.metrics()["k8s_scheduler_config_last_reload_successful"] == 1
            no_complaints(daemon)
        logger.info("%d pods were created and bound, %s", load.created, done)
        load.clear_away()


def test_a_bad_change_is_refused_and_the_last_good_one_outlives_a_restart(sandbox):
    stand_up(sandbox, make_node("n1"))
    good, bad = simple("ours"), simple("ours", paralellism=3)
    flags = ("--leader-elect=false", f"--last-good-config-map={NAMESPACE}/{SAVED}")
    options = {"config_map": f"{NAMESPACE}/{OWN}", "flags": flags}
    with config_maps(sandbox, good):
        with running(sandbox.bed, **options) as daemon:
            eventually(
                lambda: daemon.metrics()["k8s_scheduler_config_last_good_saved"], 20, "saved"
            )
            assert sandbox.find(f"{MAPS}/{SAVED}")["data"]["config.yaml"] == good
            put(sandbox, bad)
            eventually(lambda: reloads(daemon, "refused") == 1, 20, "it is refused")
            page = current(daemon)
            assert page["lastReloadSuccessful"] is False
            assert 'did you mean "parallelism"' in page["refused"]["errors"][0]
        before = set(config_events(sandbox, set()))
        with running(sandbox.bed, **options) as daemon:
            assert "STARTING WITH THE LAST GOOD ONE" in daemon.log.read_text()
            assert current(daemon)["source"] == f"{NAMESPACE}/{SAVED}:config.yaml"
            assert daemon.metrics()["k8s_scheduler_config_last_reload_successful"] == 0
            eventually(lambda: config_events(sandbox, before), 20, "an Event says so")
            sandbox.create_pods([make_pod("p", scheduler_name="ours")])
            wait_bound(sandbox, 1)
            # What is right again is taken at once.
            put(sandbox, simple("ours", podMaxBackoffSeconds=7))
            eventually(lambda: reloads(daemon, "applied") == 1, 20, "it is taken")
            saved = simple("ours", podMaxBackoffSeconds=7)
            eventually(
                lambda: sandbox.find(f"{MAPS}/{SAVED}")["data"]["config.yaml"] == saved, 20, "kept"
            )


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (f"{NAMESPACE}/{OWN}", "does not exist"),
        (f"{NAMESPACE}/{OWN}:other.yaml", 'has no key "other.yaml"; it has config.yaml'),
        (f"{NAMESPACE}/kube-root-ca.crt", "may not be read"),
    ],
    ids=["no ConfigMap", "no key", "no right"],
)
def test_a_configuration_that_is_not_there_ends_the_start_with_words(sandbox, reference, message):
    with config_maps(sandbox, simple("ours")):
        if "not exist" in message:
            sandbox.client.delete(f"{MAPS}/{OWN}")
        daemon = Daemon(sandbox.bed, name=f"lost-{abs(hash(reference))}", config_map=reference)
        daemon.start(wait=False)
        assert daemon.wait() == 2
    text = daemon.log.read_text()
    assert message in text
    assert "Traceback" not in text


def test_a_mounted_file_is_followed_and_says_what_needs_a_restart(sandbox):
    stand_up(sandbox, make_node("n1"))
    sandbox.create_pods([make_pod(name, scheduler_name=name) for name in ("first", "second")])
    with running(sandbox.bed, configuration=simple("first"), program=as_pod(sandbox)) as daemon:
        # The pod that the daemon believes to be says where its file comes from.
        sandbox.create_pods([mounting("me", "their-config", str(daemon.folder))])
        eventually(lambda: node_of(sandbox, "first") == "n1", 20, "one is served")
        mount(daemon, simple("second", leaderElection={"resourceName": "x"}))
        # Nobody tells it: it looks.
        eventually(lambda: node_of(sandbox, "second") == "n1", 20, "now the other one is")
        assert current(daemon)["restartNeeded"] == ["leaderElection.resourceName"]
        assert daemon.metrics()["k8s_scheduler_config_restart_needed"] == 1
        daemon.signal(signal.SIGHUP)
        eventually(lambda: reloads(daemon, "unchanged") == 1, 20, "it looks when asked")
        mount(daemon, "profiles: [")
        eventually(lambda: reloads(daemon, "refused") == 1, 20, "it is refused")
        eventually(lambda: events(sandbox, "InvalidConfiguration"), 20, "an Event says so")
        (told,) = events(sandbox, "InvalidConfiguration")
        assert told[0] == "their-config"
        server = f"--server=https://127.0.0.1:{daemon.port}"
        shown = subprocess.run(
            [PROGRAM, "config", "current", server], capture_output=True, text=True, check=True
        ).stdout
        assert "schedulerName: second" in shown
        assert "# needs a restart to take effect: leaderElection.resourceName" in shown
        assert "# refused at " in shown
        # The shipped role names another ConfigMap, so this one's uid can't be read: it is said.
        (refusal,) = refusals(daemon)
        assert "missing permission: get configmaps in namespace" in refusal


def as_pod(sandbox: Sandbox) -> tuple[str, ...]:
    """Return the program with what the downward API would tell it."""
    env = shutil.which("env")
    assert env is not None
    return env, "POD_NAME=me", f"POD_NAMESPACE={sandbox.namespace}", str(PROGRAM)


def mounting(name: str, config_map: str, path: str) -> dict:
    pod = make_pod(name, scheduler_name="nobody")
    pod["spec"]["volumes"] = [{"name": "config", "configMap": {"name": config_map}}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "config", "mountPath": path}]
    return pod


def mount(daemon: Daemon, text: str) -> None:
    """Change the file as a kubelet does: another file takes its place."""
    new = daemon.config.with_name(".new")
    new.write_text(text)
    new.replace(daemon.config)


def test_kinds_are_watched_as_long_as_somebody_reads_them(sandbox):
    no_volumes = {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": KEPT}}}
    stand_up(sandbox, make_node("n1"))
    small = yaml.safe_dump(yaml.safe_load(simple("ours")) | {"profiles": [NAMED | no_volumes]})
    with running(sandbox.bed, configuration=small) as daemon:
        assert lists(daemon) == {"nodes", "pods"}
        mount(daemon, simple("ours"))
        eventually(lambda: reloads(daemon, "applied") == 1, 30, "it is taken")
        assert {"persistentvolumes", "csinodes", "services"} <= lists(daemon)
        sandbox.create_pods([make_pod("p", scheduler_name="ours")])
        wait_bound(sandbox, 1)
        mount(daemon, small)
        eventually(lambda: "Watched no longer" in daemon.log.read_text(), 30, "they are let go")
        sandbox.create_pods([make_pod("q", scheduler_name="ours")])
        wait_bound(sandbox, 2)
        no_complaints(daemon)


NAMED = {"schedulerName": "ours"}
KEPT = [{"name": name} for name in ("PrioritySort", "NodeResourcesFit", "DefaultBinder")]


def lists(daemon: Daemon) -> set[str]:
    """Return what the daemon has listed so far."""
    name = "k8s_scheduler_reflector_lists_total{"
    return {
        key.partition('resource="')[2].partition('"')[0]
        for key, value in daemon.metrics().items()
        if key.startswith(name) and value
    }
