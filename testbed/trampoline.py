"""Become another program that dies with the process which started it.

    python -I -S trampoline.py PARENT_PID PROGRAM ARGUMENTS...

The kernel sends SIGKILL when the *thread* that started us ends (PR_SET_PDEATHSIG), and keeps that
setting through the exec. Doing it in a program of its own, instead of between fork and exec of
the owner, runs no Python in a half-copied multi-threaded process. It imports nothing of this
package, so that it starts in a few milliseconds.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for the signal, make sure that the parent still lives, and become the program."""
    parent, *command = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        sys.exit(f"trampoline: prctl failed: {os.strerror(ctypes.get_errno())}")
    # The parent may have died before the line above; then no signal will ever come.
    if os.getppid() != int(parent):
        sys.exit("trampoline: the parent is gone")
    os.execv(command[0], command)  # noqa: S606 - becoming the program is the purpose


if __name__ == "__main__":
    main()
