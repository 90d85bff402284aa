"""Reads single pods of which the watch shows nothing.

A read that fails (no answer, no right to it) is dropped: the core asks again. So only the reads
that wait for their turn are kept here, one for each pod.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.response_meaning import is_missing
from k8s_scheduler.kube.resources import PODS
from k8s_scheduler.kube.watch.decoding import ObjectDecoder, Undecodable
from k8s_scheduler.kube.workers import POD_READING_WORKERS
from k8s_scheduler.lib.worker_pool import WorkerPool

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 10.0
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


class ReadRequest(msgspec.Struct, frozen=True):
    """Which pod; `attempt` comes back with it."""

    uid: PodUid
    namespace: str
    name: str
    attempt: int


class ReadOutcome(msgspec.Struct, frozen=True):
    """A pod as it is; None if there is none of that uid any more, or it has finished."""

    uid: PodUid
    attempt: int
    pod: Pod | None


class PodReader:
    """Reads one pod after the other."""

    def __init__(self, caller: Caller, *, on_read: Callable[[ReadOutcome], None]) -> None:
        self._caller = replace(caller, timeout_seconds=_TIMEOUT_SECONDS)
        self._on_read = on_read
        self._decoder = ObjectDecoder(PODS)
        self._waiting: set[PodUid] = set()
        self._queue: deque[ReadRequest] = deque()
        self._readers = WorkerPool(POD_READING_WORKERS, self._next, self._work_off)
        self._log = BoundedLog(log, caller.timing.clock)

    def submit(self, request: ReadRequest) -> None:
        """Take a request, unless the pod is about to be read anyway."""
        if request.uid not in self._waiting:
            self._waiting.add(request.uid)
            self._queue.append(request)
            self._readers.notify()

    async def run(self) -> None:
        await self._readers.run()

    def _next(self) -> ReadRequest | None:
        return self._queue.popleft() if self._queue else None

    async def _work_off(self, request: ReadRequest) -> None:
        await self._caller.admit()
        outcome = await self._read(request)
        self._waiting.discard(request.uid)
        if outcome is not None:
            self._on_read(outcome)

    async def _read(self, request: ReadRequest) -> ReadOutcome | None:
        path = PODS.object_path(request.name, namespace=request.namespace)
        try:
            response = await self._caller.send("GET", path)
        except KubeError as error:
            self._log.warning("read", "a pod could not be read: %s", error)
            return None
        if is_missing(response):
            return ReadOutcome(request.uid, request.attempt, None)
        if not response.ok:
            self._refused(request, response)
            return None
        pod = self._decoder.object(response.body)
        if isinstance(pod, Undecodable):
            self._log.warning("decode", "a pod that was read makes no sense: %s", pod.key)
            return None
        is_another = pod.metadata.uid != request.uid
        # Finished pods hold no resources, and the watch leaves them out.
        is_over = pod.status.phase in _FINISHED
        return ReadOutcome(request.uid, request.attempt, None if is_another or is_over else pod)

    def _refused(self, request: ReadRequest, response: Response) -> None:
        error = response.error()
        if response.status == 403:
            self._log.forbidden("get", "pods", namespace=request.namespace, error=error)
        else:
            self._log.warning("read", "a pod could not be read: %s", error)
