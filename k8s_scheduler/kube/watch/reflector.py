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

Before a watch is resumed the server is asked for its current version, by a consistent list of one
object: if that is lower than where the watch ended, the storage was set back (`set_back.py`), and
the resumed watch would be silent. A reflector that got no answer for a while reports that
(`returned`), because by then the versions may have overtaken ours.

A server may not have the resource at all (404). Where that is allowed it is no failure: there is
nothing to list, which is an answer, and the list is tried again now and then, since an upgrade or
another configuration of the server brings the resource. What was known before stays: a server that
is behind its twins during an upgrade must not wipe out what they show.

Do not catch anything but `KubeError` here: a bug must end the task that runs this, and not be
retried for ever.
"""

import asyncio
import enum
import logging
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
from k8s_scheduler.kube.resources import T, is_newer
from k8s_scheduler.kube.waiting import wait_within
from k8s_scheduler.kube.watch.listing import PageLister, current_version
from k8s_scheduler.kube.watch.queries import streaming_list_query, watch_query
from k8s_scheduler.kube.watch.reflector_limits import Delays
from k8s_scheduler.kube.watch.reflector_log import Troubles
from k8s_scheduler.kube.watch.reflector_parts import ReflectorParts
from k8s_scheduler.kube.watch.set_back import AWAY_SECONDS, Source
from k8s_scheduler.kube.watch.streams import StreamError
from k8s_scheduler.kube.watch.watching import Watcher
from k8s_scheduler.obs.metrics import KubeMetrics

logger = logging.getLogger(__name__)

# So many streaming lists may be accepted and then not end, before a paged list is made instead: a
# proxy on the way may swallow the bookmark that ends them.
MISSES_BEFORE_PAGES: Final = 3
# The cost of one object in a list, from which `catch_up` derives how long to wait for the watch
# before it lists instead; and the longest such wait.
_LISTED_OBJECT_SECONDS: Final = 50e-6
_LONGEST_REACH_SECONDS: Final = 2.0


class Mode(enum.Enum):
    """What an attempt asks of the server."""

    STREAMING_LIST = enum.auto()
    PAGED_LIST = enum.auto()
    WATCH = enum.auto()


class Reflector(Generic[T]):
    """Lists and watches one resource."""

    def __init__(self, parts: ReflectorParts[T], metrics: KubeMetrics) -> None:
        self._parts = parts
        self._loop = asyncio.get_running_loop()
        self._delays = Delays(parts.pace)
        self._troubles = Troubles(parts.resource, metrics, self._loop.time)
        self._lister = PageLister(parts, metrics)
        self._watcher = Watcher(parts, metrics, on_open=self._opened)
        self._streaming_lists = metrics.reflector_lists.labels(parts.resource.label, "streaming")
        self._streaming_refused = False
        self._streaming_misses = 0
        self.is_absent = False
        # Whether the version to be watched from was listed just now; and since when no watch or
        # list has vouched for the server, None while a watch does.
        self._just_listed = False
        self._away_since: float | None = None
        # Ends the wait before the next attempt.
        self._hurry = asyncio.Event()

    async def run(self) -> NoReturn:
        while True:
            began = self._loop.time()
            ticket = self._parts.progress.begin_list()
            mode = self._next_mode()
            try:
                try:
                    await self._attempt(mode)
                finally:
                    if self._away_since is None:
                        self._away_since = self._watcher.heard_at
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
                await wait_within(self._hurry, delay_seconds, sleep=asyncio.sleep)
                self._hurry.clear()

    async def fresh_list(self) -> None:
        ticket = self._parts.progress.want_list()
        self._watcher.interrupt()
        await self._parts.progress.wait_for(ticket)

    def doubt(self) -> None:
        self._parts.progress.doubt()
        self._watcher.interrupt()
        self._hurry.set()

    async def catch_up(self) -> None:
        """Return once everything is applied that had happened when this was called.

        The server says how far it has come. The watch of a large, busy cluster gets there in a
        moment; it is given about the time that a list would take. Where that is not enough, as in
        a quiet cluster, everything is listed.
        """
        progress = self._parts.progress
        known = progress.resource_version
        try:
            version = await current_version(self._parts)
        except KubeError:
            # A list is tried until it is answered.
            await self.fresh_list()
            return
        if not progress.is_doubted and is_newer(known, version):
            self._report_lower(version)
        elif not progress.is_doubted:
            objects = len(self._parts.store.objects)
            seconds = min(objects * _LISTED_OBJECT_SECONDS, _LONGEST_REACH_SECONDS)
            try:
                async with asyncio.timeout(seconds):
                    await progress.reach(version)
            except TimeoutError:
                pass
            else:
                return
        await self.fresh_list()

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
            self._just_listed = True
            self._away_since = self._loop.time()
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
            await self._resume(timeout_seconds)

    async def _resume(self, timeout_seconds: float) -> None:
        """Watch from where the last list or watch has ended, if the server still knows that."""
        parts = self._parts
        just_listed, self._just_listed = self._just_listed, False
        if not just_listed:
            current = await current_version(parts)
            if parts.progress.goes_back(current):
                self._report_lower(current)
            if parts.progress.list_due:
                return
        version = parts.progress.resource_version
        await self._watcher.watch(
            watch_query(parts.resource, version, timeout_seconds=timeout_seconds)
        )

    def _report_lower(self, version: str) -> None:
        self._parts.report_set_back(Source.CURRENT, seen=version)
        self._watcher.interrupt()

    def _opened(self) -> None:
        """Take note of a watch that the server has accepted."""
        self._works()
        away_since, self._away_since = self._away_since, None
        if away_since is None or self._watcher.is_listing:
            return
        if self._loop.time() - away_since >= AWAY_SECONDS:
            self._parts.signals.returned(self._parts.resource.label)

    def _works(self) -> None:
        self.is_absent = False
        self._troubles.over()

    def _watch_seconds(self) -> float:
        pace = self._parts.pace
        return pace.rng.uniform(pace.watch_min_seconds, pace.watch_max_seconds)

    def _list_in_pages(self, error: KubeError) -> None:
        self._streaming_refused = True
        logger.info(
            "server has no streaming lists, listing in pages",
            extra={"fields": {"resource": self._parts.resource.label, "error": str(error)}},
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
