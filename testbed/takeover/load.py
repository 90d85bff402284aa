"""Pods that keep coming in, from a thread of their own."""

import itertools
import threading
from typing import Self

from testbed.errors import TestbedError
from testbed.sandbox import Sandbox
from testbed.workload import make_node, make_pod, object_path

_JOIN_SECONDS = 30.0
_numbers = itertools.count()


def large_nodes(sandbox: Sandbox, count: int = 20, *, cordoned: bool = False) -> list[str]:
    """Create nodes with room for every pod of a measurement; return their paths."""
    nodes = [
        make_node(f"n{i}", cpu="1000", memory="4Ti", pods=5000, unschedulable=cordoned)
        for i in range(count)
    ]
    sandbox.create_nodes(nodes)
    return [object_path(node) for node in nodes]


def uncordon(sandbox: Sandbox, paths: list[str]) -> None:
    """Let pods come to nodes."""
    for path in paths:
        sandbox.client.patch(path, {"spec": {"unschedulable": False}})


class Stream:
    """Creates a pod every so often while its context is open."""

    def __init__(self, sandbox: Sandbox, *, scheduler_name: str, per_second: float) -> None:
        self._sandbox = sandbox
        self._scheduler_name = scheduler_name
        self._pause_seconds = 1.0 / per_second
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load")
        self.created = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)
        if self._failure is not None:
            raise TestbedError(f"no more pods could be created: {self._failure}")

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._pause_seconds):
                name = f"load-{next(_numbers)}"
                pod = make_pod(name, cpu="10m", scheduler_name=self._scheduler_name)
                self._sandbox.create_pods([pod])
                self.created += 1
        except BaseException as error:  # noqa: BLE001  told to whoever opened the context
            self._failure = error
