"""The recordings of a run, replayed: what each replica decided, and whether it comes out again."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.chaos.archive import write_lines
from testbed.chaos.evidence import Replayed
from testbed.daemon import PROGRAM

_REPLAY_SECONDS = 600.0
_SHOWN_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said."""

    code: int
    text: str


Ask = Callable[[Sequence[str]], Answer]


def ask_program(arguments: Sequence[str]) -> Answer:
    """Run `k8s-scheduler` with some arguments."""
    ended = subprocess.run(
        [str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_REPLAY_SECONDS,
    )
    return Answer(ended.returncode, ended.stdout if not ended.returncode else ended.stderr)


def replay_recordings(folder: Path, *, ask: Ask = ask_program) -> None:
    """Have every recording replayed to its decisions, and checked."""
    (folder / "decisions").mkdir(exist_ok=True)
    replayed = []
    for tape in sorted((folder / "record").glob("*.tape")):
        out = folder / "decisions" / f"{tape.stem}.jsonl"
        answer = ask(["replay", str(tape), "--check", "--quiet", "--decisions", str(out)])
        words = answer.text.strip()[-_SHOWN_CHARACTERS:] if answer.code else ""
        replayed.append(Replayed(tape.stem, answer.code, words))
    write_lines(folder / "replays.jsonl", replayed)
