"""What the core asks for while it handles a message, in the order in which it was found out.

There is one outbox, the core's. A function that changes the state appends what follows from the
change at once, so the order of calls is the order of instructions, also where a plugin or the queue
has called back. Why there are no generators of instructions: ADR 0030.
"""

from k8s_scheduler.core.messages.outgoing import Instruction, Log


class Outbox:
    """Instructions that the shell has not been given yet, and the numbers of requests."""

    def __init__(self) -> None:
        self._instructions: list[Instruction] = []
        self._remarks: list[Log] = []
        # Part of checkpoints.
        self.last_request = 0

    def append(self, instruction: Instruction) -> None:
        """Ask for something, after all that was asked for before."""
        self._instructions.append(instruction)

    def remark(self, line: Log) -> None:
        """Log something that was noticed on the way, after all instructions of the message."""
        self._remarks.append(line)

    def number(self) -> int:
        """Return the number of a new request: no two are the same, so an answer finds its own."""
        self.last_request += 1
        return self.last_request

    def drain(self) -> list[Instruction]:
        drained = [*self._instructions, *self._remarks]
        self._instructions.clear()
        self._remarks.clear()
        return drained
