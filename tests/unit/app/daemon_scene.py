"""A whole daemon on an API server in memory, on virtual time."""

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import LeaderElection
from k8s_scheduler.app.lifecycle import Daemon
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.process.environment import Environment
from k8s_scheduler.app.wiring import wire
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.obs.metrics import Metrics

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


async def _no_watchdog(_hang_seconds):
    await asyncio.Event().wait()


async def _no_sentinel(_work, _kubeconfig):
    await asyncio.Event().wait()


def node(name, cpu="4"):
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": allocatable}}


def pod(name, cpu="1", node_name="", **metadata):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "a", **metadata},
        "spec": {
            "nodeName": node_name,
            "schedulerName": "default-scheduler",
            "containers": [container],
        },
        "status": {"phase": "Pending"},
    }


def nodes_of(api):
    return {
        p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in api.objects(PODS).values()
    }


@asynccontextmanager
async def daemon(api, *, elect=False, lease="kube-scheduler", extras=None, seed=1):
    """Run a daemon for the length of a block; yields its graph."""
    clock = asyncio.get_running_loop().time
    around = Environment(
        clock=clock,
        boot_clock=clock,
        wall_clock_ns=lambda: int(clock() * 1e9),
        cpu_clock=lambda: 0.0,
        rng=random.Random(seed),
        hostname=lease,
        warm_up=lambda _setup: None,
        keep_memory=lambda: None,
        watchdog=_no_watchdog,
        sentinel=_no_sentinel,
    )
    base = default_configuration(known_plugins())
    election = LeaderElection(leader_elect=elect, resource_name=lease)
    settings = msgspec.structs.replace(base.settings, leader_election=election)
    configuration = replace(base, settings=settings, extras=extras or base.extras)
    options = RunOptions(configuration=configuration)
    graph = wire(options, api, Metrics(), surroundings=around)
    stop = asyncio.Event()
    running = asyncio.create_task(Daemon(graph, options, surroundings=around).run(stop))
    try:
        yield graph, running
    finally:
        stop.set()
        await asyncio.wait((running,))
