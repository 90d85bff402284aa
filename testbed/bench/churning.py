"""Objects that come and go while pods are placed, at the workload's own pace.

Ticks are due at fixed times, however long the requests take: who keeps the API server busy gets as
much of it as anybody else.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from testbed.bench.scenarios import Churn, Step
from testbed.bench.world import World, collection_path
from testbed.client import Client, Object
from testbed.errors import ApiError


@contextmanager
def churning(churn: Churn | None, world: World, *, nodes: int) -> Iterator[None]:
    """Let objects come and go, where the workload has that; an error of that is raised at the end.

    It is raised also where something else has failed meanwhile: it may be the cause.
    """
    if churn is None:
        yield
        return
    over = threading.Event()

    def do(step: Step) -> None:
        for item in step.create:
            world.fill([item], threads=1)
        for item in step.delete:
            _delete(world.bed.client, item)

    def work() -> None:
        for tick in due(churn.interval_seconds, over.wait):
            do(churn.at(tick, nodes=nodes))

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="churn") as pool:
        working = pool.submit(work)
        try:
            yield
        finally:
            over.set()
            working.result()


def due(
    interval_seconds: float,
    wait: Callable[[float], bool],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[int]:
    """Yield the ticks when they are due, late ones at once, until `wait` says that it is over."""
    begin, tick = clock(), 0
    while not wait(max(0.0, begin + (tick + 1) * interval_seconds - clock())):
        yield tick
        tick += 1


def _delete(client: Client, item: Object) -> None:
    try:
        client.delete(f"{collection_path(item)}/{item['metadata']['name']}")
    except ApiError as error:
        if error.status != 404:
            raise
