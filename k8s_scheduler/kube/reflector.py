"""Keeping a store equal to what the API server has, for as long as the process lives.

              refused: no streaming lists here
            ┌──────────────────────────────────┐
            │                                  ▼
     ┌──────┴─────────┐  bookmark       ┌────────────┐
 ───►│ streaming list ├───────┐  ┌──────┤ paged list │
     └──▲─────────────┘       ▼  ▼      └─────▲──────┘
        │                   ┌───────┐         │
        ├───────────────────┤ watch ├─────────┤   a list is due: history is gone (410),
        │                   └─┬───▲─┘         │   the version is refused, or fresh state is wanted
        │    failed, stalled, │   │ resume    │
        │    broken           ▼   │           │
        │                   ┌─────┴─┐         │
        └───────────────────┤ wait  ├─────────┘
                            └───────┘

A streaming list and the watch after it are one request; a watch that ends as agreed is opened
again at once. After a list has begun, the version from before it is never watched again: its
events would undo what the list has shown.

A server may not have the resource at all (404). Where that is allowed it is no failure: there is
nothing to list, which is an answer, and the list is tried again now and then, since an upgrade or
another configuration of the server brings the resource. What was known before stays: a server that
is behind its twins during an upgrade must not wipe out what they show.

Do not catch anything but `KubeError` here: a mistake of our own must end the task that runs
this, and not be retried for ever.
"""

import asyncio
import enum
import logging
import random
from typing import Final, Generic, NoReturn

from k8s_scheduler.kube.errors import (
    ApiError,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from k8s_scheduler.kube.listing import PageLister
from k8s_scheduler.kube.pace import Delays
from k8s_scheduler.kube.parts import Parts
from k8s_scheduler.kube.queries import streaming_list_query, watch_query
from k8s_scheduler.kube.resources import T
from k8s_scheduler.kube.streams import StreamError
from k8s_scheduler.kube.troubles import Troubles
from k8s_scheduler.kube.watching import Watcher
from k8s_scheduler.obs.metrics import KubeMetrics

logger = logging.getLogger(__name__)

# So often may a streaming list be accepted and then not come to its end, before one is made in
# pages: some proxy on the way may swallow what ends it, and progress is better than hope.
MISSES_BEFORE_PAGES: Final = 3


class Mode(enum.Enum):
    """What an attempt asks of the server."""

    STREAMING_LIST = enum.auto()
    PAGED_LIST = enum.auto()
    WATCH = enum.auto()


class Reflector(Generic[T]):
    """Lists and watches one resource."""

    def __init__(self, parts: Parts[T], metrics: KubeMetrics, *, rng: random.Random) -> None:
        self._parts = parts
        self._rng = rng
        self._loop = asyncio.get_running_loop()
        self._delays = Delays(parts.pace, rng)
        self._troubles = Troubles(parts.resource, metrics, self._loop.time)
        self._lister = PageLister(parts, metrics)
        self._watcher = Watcher(parts, metrics, on_open=self._works)
        self._streaming_lists = metrics.reflector_lists.labels(parts.resource.plural, "streaming")
        self._streaming_refused = False
        self._streaming_misses = 0
        self.is_absent = False

    async def run(self) -> NoReturn:
        """Keep the store up to date until cancelled."""
        while True:
            began = self._loop.time()
            ticket = self._parts.progress.begin_list()
            mode = self._next_mode()
            try:
                await self._attempt(mode)
            except KubeError as error:
                streaming = mode is Mode.STREAMING_LIST and self._watcher.is_listing
                if streaming and _refuses_streaming(error):
                    self._list_in_pages(error)
                    continue
                self._judge(error, streaming=streaming)
                lasted_seconds = self._loop.time() - began
                delay_seconds = self._delays.after(error, lasted_seconds=lasted_seconds)
                if isinstance(error, NotFound) and self._parts.resource.may_be_absent:
                    self.is_absent = True
                    self._troubles.report_absence(error, delay_seconds=delay_seconds)
                    self._parts.progress.complete_absence(ticket)
                else:
                    verb = "list" if mode is Mode.PAGED_LIST else "watch"
                    self._troubles.report(error, verb=verb, delay_seconds=delay_seconds)
                await asyncio.sleep(delay_seconds)

    async def fresh_list(self) -> None:
        """Return once a list that began after this call is applied in full."""
        ticket = self._parts.progress.want_list()
        self._watcher.interrupt()
        await self._parts.progress.wait_for(ticket)

    def _next_mode(self) -> Mode:
        if not self._parts.progress.list_due:
            return Mode.WATCH
        if self._streaming_refused or self._streaming_misses >= MISSES_BEFORE_PAGES:
            return Mode.PAGED_LIST
        return Mode.STREAMING_LIST

    async def _attempt(self, mode: Mode) -> None:
        resource = self._parts.resource
        timeout_seconds = self._watch_seconds()
        if mode is Mode.PAGED_LIST:
            await self._lister.run()
            self._streaming_misses = 0
            self._works()
        elif mode is Mode.STREAMING_LIST:
            self._streaming_lists.inc()
            query = streaming_list_query(resource, timeout_seconds=timeout_seconds)
            try:
                await self._watcher.stream_list(query)
            finally:
                if not self._watcher.is_listing:
                    self._streaming_misses = 0
        else:
            version = self._parts.progress.resource_version
            query = watch_query(resource, version, timeout_seconds=timeout_seconds)
            await self._watcher.watch(query)

    def _works(self) -> None:
        self.is_absent = False
        self._troubles.over()

    def _watch_seconds(self) -> float:
        pace = self._parts.pace
        return self._rng.uniform(pace.watch_min_seconds, pace.watch_max_seconds)

    def _list_in_pages(self, error: KubeError) -> None:
        self._streaming_refused = True
        logger.info(
            "server has no streaming lists, listing in pages",
            extra={"fields": {"resource": self._parts.resource.plural, "error": str(error)}},
        )

    def _judge(self, error: KubeError, *, streaming: bool) -> None:
        """Decide what a failure means for the next attempt."""
        if streaming:
            self._streaming_misses += isinstance(error, StreamError)
        elif isinstance(error, ApiError) and not _can_resume(error):
            self._parts.progress.want_list()


def _refuses_streaming(error: KubeError) -> bool:
    return isinstance(error, Invalid) or (isinstance(error, ApiError) and error.status == 400)


def _can_resume(error: ApiError) -> bool:
    """Return whether, after this refusal, the same watch may be asked for again.

    Throttling, failures and missing rights pass. Any other refusal is about what was asked for,
    the version above all, and only a list gives another one.
    """
    if isinstance(error, ServerError):
        # A version from the future: the server's storage was set back, as by a restored backup.
        return "Too large resource version" not in error.message
    return isinstance(error, TooManyRequests | Unauthorized | Forbidden)
