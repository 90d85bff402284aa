"""How many bytes the process has allocated, by the account of its allocator.

With `PYTHONMALLOC=malloc` everything, arrays too, comes from the C library, which keeps the
account anyway: reading it costs nothing, and nothing is slower for it. Elsewhere tracemalloc has
to do it, at a multiple of the CPU.
"""

import ctypes
import gc
import os
import sys
import tracemalloc

ALLOCATOR = "PYTHONMALLOC"


class _MallInfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def begin_anew_with_account() -> None:
    """Start the program again so that the C library accounts for all memory, if it can."""
    if ALLOCATOR not in os.environ and _account() is not None:
        arguments = sys.orig_argv[1:]
        os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, ALLOCATOR: "malloc"})


def bytes_in_use() -> int:
    """Return how many bytes are allocated now."""
    gc.collect()
    account = _account() if os.environ.get(ALLOCATOR) == "malloc" else None
    if account is not None:
        found = account()
        return int(found.uordblks + found.hblkhd)
    if not tracemalloc.is_tracing():
        raise RuntimeError("without the C library's account tracemalloc has to be started")
    return tracemalloc.get_traced_memory()[0]


def _account():
    if not sys.platform.startswith("linux"):
        return None
    account = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if account is not None:
        account.restype = _MallInfo2
    return account
