"""What the C library's allocator holds, and how it is made to return what is free.

glibc keeps freed memory for later: all but the end of its heap stays with the process until
`malloc_trim` is called, which returns every page that holds nothing. Other C libraries have neither
of the two functions; there nothing is known, and nothing is done. So it is with glibc before 2.33.

Python's own allocator keeps small objects in pieces of 1 MiB that it asks the system for itself:
one object that lives on keeps all of a piece, and nothing can be done about that. Where the
environment has `PYTHONMALLOC=malloc`, small objects are glibc's, which returns single pages.
"""

import ctypes
from typing import Final


class _Mallinfo2(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
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
    )


_LIBRARY: Final = ctypes.CDLL(None)
_TRIM: Final = getattr(_LIBRARY, "malloc_trim", None)
_INFO: Final = getattr(_LIBRARY, "mallinfo2", None)
if _INFO is not None:
    _INFO.restype = _Mallinfo2


def used_bytes() -> int | None:
    """Return how much the allocator has given out; None where that can't be known."""
    if _INFO is None:
        return None
    info = _INFO()
    return int(info.uordblks + info.hblkhd)


def trim() -> None:
    """Return every free page to the system; milliseconds, in which nothing can be allocated."""
    if _TRIM is not None:
        _TRIM(0)
