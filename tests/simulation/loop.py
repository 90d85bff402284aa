"""An event loop on virtual time, shared by several processes that can be stopped one by one.

Time moves only when nothing is ready: it jumps to the next timer. What is ready runs in the order
in which it became ready, as asyncio promises; chance comes in through the network alone (when
requests arrive, when answers come). So the same plan leads to the same run, turn by turn.

A process is a context: every task and callback of a daemon carries its owner's name. Those of a
frozen owner are put aside when their turn comes and run, in their order, when it is thawed. That is
what SIGSTOP and SIGCONT do: timers are late, and what was sent meanwhile has already arrived.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

import msgspec

OWNER: ContextVar[str] = ContextVar("owner", default="")
# Rebuilding the heap costs more than carrying a few dead timers along.
_DEAD_TIMERS = 300
_TURNS_WITHOUT_TIME = 20_000


class StandstillError(Exception):
    """Nothing can ever happen again, or things happen for ever and no time passes."""


class _Handle(msgspec.Struct, eq=False):
    """A callback that waits for its turn. Some thousands are made in a run: no frame for each."""

    callback: Callable[..., Any]
    args: tuple[Any, ...]
    context: Context
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled


class _Timer(_Handle, eq=False):
    """A callback that waits for its time."""

    loop: Any = None
    due: float = 0.0
    is_scheduled: bool = True

    def __lt__(self, other: object) -> bool:
        # The heap asks where two are due at the same time: neither comes first.
        return False

    def cancel(self) -> None:
        if not self.is_cancelled:
            self.is_cancelled = True
            if self.is_scheduled:
                self.loop.dead_timers += 1

    def when(self) -> float:
        return self.due


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module's docstring."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        # A heap of (when, timer): timers alone would be compared by a method of theirs.
        self._timers: list[tuple[float, _Timer]] = []
        # Those of them that were cancelled.
        self.dead_timers = 0
        self._held: dict[str, list[_Handle]] = {}
        self._turns = 0
        self._tasks: dict[str, list[asyncio.Task[Any]]] = {}
        self.outside = Context()

    # Nobody debugs it, and every future asks: a call of `bool` says no, without a frame.
    get_debug = staticmethod(bool)

    def time(self) -> float:
        return self.now

    def at(self, when: float, callback: Callable[..., Any], *args: Any) -> asyncio.TimerHandle:
        """Call back at a time, whatever happens to the process that asks."""
        now = self.now
        due = max(now, when)
        timer = _Timer(callback, args, self.outside, False, self, due)  # noqa: FBT003
        heapq.heappush(self._timers, (due, timer))
        return timer

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if context is None:
            context = copy_context()
        timer = _Timer(callback, args, context, False, self, when)  # noqa: FBT003
        heapq.heappush(self._timers, (when, timer))
        return timer

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: Any = None, context: Any = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        owner = OWNER.get() if context is None else context.get(OWNER, "")
        self._tasks.setdefault(owner, []).append(task)
        return task

    def end(self, owner: str) -> list[asyncio.Task[Any]]:
        """Cancel every task of this owner; return those that have still to notice."""
        ending = [task for task in self._tasks.pop(owner, ()) if not task.done()]
        for task in ending:
            task.cancel()
        return ending

    def close(self) -> None:
        """End, and let go of everything: what is not in a circle need not be searched for."""
        super().close()
        self._timers.clear()
        self._tasks.clear()
        self._held.clear()

    def freeze(self, owner: str) -> None:
        """Let nothing of this owner run."""
        self._held.setdefault(owner, [])

    def thaw(self, owner: str) -> None:
        """Let everything run that would have run meanwhile."""
        self._ready.extend(self._held.pop(owner, ()))

    def _run_once(self) -> None:
        """Take turn after turn, until somebody says stop."""
        ready, held, timers = self._ready, self._held, self._timers
        while True:
            if timers and (timers[0][1].is_cancelled or self.dead_timers > _DEAD_TIMERS):
                self._drop_dead_timers()
            if not ready:
                self._jump()
            self._turns += 1
            if self._turns > _TURNS_WITHOUT_TIME:
                self._turns = 0
                raise StandstillError(f"{_TURNS_WITHOUT_TIME} turns at {self.now:.3f} s")
            if timers and timers[0][0] <= self.now:
                self._take_due()
            for _ in range(len(ready)):
                handle = ready.popleft()
                if handle.is_cancelled or (held and self._is_held(handle)):
                    continue
                try:
                    handle.context.run(handle.callback, *handle.args)
                except Exception as error:  # noqa: BLE001  it is told, and the loop goes on
                    failure = {"message": "a callback failed", "exception": error}
                    self.call_exception_handler(failure)
            if self._stopping:
                return

    def _jump(self) -> None:
        """Go to where something is due."""
        timers = self._timers
        if not timers:
            raise StandstillError("every task waits and no timer is set")
        if timers[0][0] > self.now:
            self.now, self._turns = timers[0][0], 0

    def _take_due(self) -> None:
        """Make ready what is due now."""
        timers, now = self._timers, self.now
        while timers and timers[0][0] <= now:
            timer = heapq.heappop(timers)[1]
            timer.is_scheduled = False
            if timer.is_cancelled:
                self.dead_timers -= 1
            else:
                self._ready.append(timer)

    def _is_held(self, handle: _Handle) -> bool:
        """Put aside what belongs to a frozen owner."""
        waiting = self._held.get(handle.context.get(OWNER, ""))
        if waiting is None:
            return False
        waiting.append(handle)
        return True

    def _drop_dead_timers(self) -> None:
        timers = self._timers
        if self.dead_timers > _DEAD_TIMERS:
            for _, timer in timers:
                timer.is_scheduled = not timer.is_cancelled
            timers[:] = [entry for entry in timers if not entry[1].is_cancelled]
            heapq.heapify(timers)
            self.dead_timers = 0
        while timers and timers[0][1].is_cancelled:
            heapq.heappop(timers)[1].is_scheduled = False
            self.dead_timers -= 1

    def _process_events(self, event_list: object) -> None:
        """Have no sockets."""

    def _write_to_self(self) -> None:
        """Have no other threads."""
