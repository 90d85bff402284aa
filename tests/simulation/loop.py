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

OWNER: ContextVar[str] = ContextVar("owner", default="")
# Rebuilding the heap costs more than carrying a few dead timers along.
_DEAD_TIMERS = 300
_TURNS_WITHOUT_TIME = 20_000


class StandstillError(Exception):
    """Nothing can ever happen again, or things happen for ever and no time passes."""


class _Lean:
    """A handle's beginning, without asking for each whether somebody debugs."""

    __slots__ = ()

    def _begin(
        self,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Handle(_Lean, asyncio.Handle):
    __slots__ = ()
    __init__ = _Lean._begin


class _Timer(_Lean, asyncio.TimerHandle):
    __slots__ = ()

    def __init__(self, when: float, *begin: Any) -> None:
        self._begin(*begin)
        self._when = when
        self._scheduled = True


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module's docstring."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        # A heap of (when, timer): timers alone would be compared by a method of theirs.
        self._timers: list[tuple[float, asyncio.TimerHandle]] = []
        self._held: dict[str, list[asyncio.Handle]] = {}
        self._turns = 0
        self._tasks: dict[str, list[asyncio.Task[Any]]] = {}
        self.outside = Context()

    def time(self) -> float:
        return self.now

    def at(self, when: float, callback: Callable[..., Any], *args: Any) -> asyncio.TimerHandle:
        """Call back at a time, whatever happens to the process that asks."""
        return self.call_at(max(when, self.now), callback, *args, context=self.outside)

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, timer))
        return timer

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: Any = None, context: Any = None
    ) -> asyncio.Task[Any]:
        task = super().create_task(coro, name=name, context=context)
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
        timers = self._timers
        if timers and (timers[0][1]._cancelled or self._timer_cancelled_count > _DEAD_TIMERS):
            self._drop_dead_timers()
        self._move_time()
        ready, held = self._ready, self._held
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled or (held and self._is_held(handle)):
                continue
            handle._run()

    def _move_time(self) -> None:
        """Make ready what is due now; if nothing is, go to where something is."""
        ready, timers = self._ready, self._timers
        if not ready:
            if not timers:
                raise StandstillError("every task waits and no timer is set")
            if timers[0][0] > self.now:
                self.now, self._turns = timers[0][0], 0
        self._turns += 1
        if self._turns > _TURNS_WITHOUT_TIME:
            self._turns = 0
            raise StandstillError(f"{_TURNS_WITHOUT_TIME} turns at {self.now:.3f} s")
        while timers and timers[0][0] <= self.now:
            timer = heapq.heappop(timers)[1]
            timer._scheduled = False
            if timer._cancelled:
                self._timer_cancelled_count -= 1
            else:
                ready.append(timer)

    def _is_held(self, handle: asyncio.Handle) -> bool:
        """Put aside what belongs to a frozen owner."""
        waiting = self._held.get(handle._context.get(OWNER, ""))
        if waiting is None:
            return False
        waiting.append(handle)
        return True

    def _drop_dead_timers(self) -> None:
        timers = self._timers
        if self._timer_cancelled_count > _DEAD_TIMERS:
            for _, timer in timers:
                timer._scheduled = not timer._cancelled
            timers[:] = [entry for entry in timers if not entry[1]._cancelled]
            heapq.heapify(timers)
            self._timer_cancelled_count = 0
        while timers and timers[0][1]._cancelled:
            heapq.heappop(timers)[1]._scheduled = False
            self._timer_cancelled_count -= 1

    def _process_events(self, event_list: object) -> None:
        """Have no sockets."""

    def _write_to_self(self) -> None:
        """Have no other threads."""
