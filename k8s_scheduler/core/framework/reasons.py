"""Reasons and verdicts: a rejection is data.

A `Reason` is one line of kube-scheduler's vocabulary. A `Verdict` is what one plugin says about
one node: its reasons, and whether evicting pods could change its mind. Columns hold a small
integer per node instead; 0 means the node passed.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, NewType

Code = NewType("Code", int)
# A verdict in its tables, and a reason besides its texts.
_VERDICT_BYTES: Final = 600
_REASON_BYTES: Final = 170


class Reason(NamedTuple):
    """Why a plugin rejects a node; `text` is kube-scheduler's wording, people grep for it."""

    code: str
    text: str

    @property
    def plugin(self) -> str:
        return self.code.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One plugin's rejection of one node: `resolvable` by preemption or not.

    Nodes outside a PreFilter node set are rejected by no single plugin: `plugin` is then
    `PreFilterResult`, and `narrowed_by` names the plugins whose set it was.
    """

    plugin: str
    reasons: tuple[Reason, ...]
    resolvable: bool
    narrowed_by: tuple[str, ...] = ()

    @property
    def blamed(self) -> tuple[str, ...]:
        """Return the plugins whose answer has to change."""
        return self.narrowed_by or (self.plugin,)


def _size(reason: Reason) -> int:
    return _REASON_BYTES + len(reason.code) + len(reason.text)


class VerdictTable:
    """Gives each distinct verdict a code, for as long as one decision lasts.

    Reasons name what pods ask for, so there is no end to them: `forget` starts over between
    decisions once there are many, or long ones.
    """

    LIMIT = 10_000
    LIMIT_BYTES = 8 * 1024 * 1024
    # More than a cluster has whose pods ask for what there is: pods with odd wishes may be gone.
    ORDINARY = 1_000
    ORDINARY_BYTES = 512 * 1024

    def __init__(self) -> None:
        self._codes: dict[Verdict, Code] = {}
        self._by_parts: dict[tuple[str, tuple[Reason, ...], bool], Code] = {}
        self._verdicts: list[Verdict | None] = [None]
        # About what they take, and how many were forgotten.
        self.nbytes = 0
        self.dropped = 0
        # Another number whenever codes may mean something else than before.
        self.epoch = 0

    def code_of(self, plugin: str, reasons: tuple[Reason, ...], *, resolvable: bool) -> Code:
        """Return the code of one plugin's verdict, without making one that is known."""
        key = (plugin, reasons, resolvable)
        found = self._by_parts.get(key)
        if found is None:
            found = self._by_parts[key] = self.code(Verdict(plugin, reasons, resolvable))
        return found

    def code(self, verdict: Verdict) -> Code:
        """Return the code of a verdict, making one at first sight."""
        found = self._codes.get(verdict)
        if found is None:
            found = Code(len(self._verdicts))
            self._codes[verdict] = found
            self._verdicts.append(verdict)
            self.nbytes += _VERDICT_BYTES + sum(_size(reason) for reason in verdict.reasons)
        return found

    def forget(self) -> None:
        """Start over if there are too many; only between decisions."""
        if len(self._verdicts) > self.LIMIT or self.nbytes > self.LIMIT_BYTES:
            self._start_over()

    def age(self) -> None:
        """Start over if there are more than ordinary: now and then, and only between decisions."""
        if len(self._verdicts) > self.ORDINARY or self.nbytes > self.ORDINARY_BYTES:
            self._start_over()

    def _start_over(self) -> None:
        self.epoch += 1
        self.dropped += len(self._verdicts) - 1
        self.nbytes = 0
        # Not cleared: Python keeps the memory of entries that are deleted.
        self._codes, self._by_parts, self._verdicts = {}, {}, [None]

    def __getitem__(self, code: int) -> Verdict:
        verdict = self._verdicts[code]
        if verdict is None:
            raise KeyError(code)
        return verdict
