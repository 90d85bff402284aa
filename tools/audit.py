"""`make audit`: what is known against the locked packages, and what must not be in the tree.

Three questions: is every requirement pinned and hashed, is there key material in the tree, and does
the package index know of vulnerabilities in what is locked. A package that could not be looked up
is a failure of the audit and never a package without vulnerabilities: pip-audit by itself says "no
known vulnerabilities" when it reached nobody.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
LOCKS: Final = (
    "requirements.lock",
    "requirements-dev.lock",
    "tools/build.lock.txt",
    "tools/uv.lock.txt",
    "tools/audit.lock.txt",
)

_PINNED: Final = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,-]+\])?==[^\s;]+")
_SECRETS: Final = (
    re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\r?\n[A-Za-z0-9+/=]{40,}"),
    re.compile(rb"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What the package index said about one lock file."""

    vulnerable: tuple[str, ...]
    # Packages about which nobody could be asked.
    unanswered: tuple[str, ...]


def requirements(text: str) -> Iterator[str]:
    """Yield each requirement of a lock file with its options, as one line."""
    for line in text.replace("\\\n", " ").splitlines():
        stripped = line.partition("#")[0].strip()
        if stripped:
            yield stripped


def loose_requirements(text: str) -> list[str]:
    """Return the requirements that are not pinned to one version, or have no hash."""
    return [
        line.split()[0]
        for line in requirements(text)
        if not _PINNED.match(line) or "--hash=sha256:" not in line
    ]


def key_material(files: Iterable[Path]) -> list[str]:
    """Return the files that hold what looks like a key."""
    return [
        str(file)
        for file in files
        if file.is_file() and any(pattern.search(file.read_bytes()) for pattern in _SECRETS)
    ]


def read_findings(report: str) -> Findings:
    """Read pip-audit's report; ValueError if it is none."""
    try:
        dependencies: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("pip-audit gave no report") from error
    vulnerable = [
        f"{d['name']} {d['version']}: {v['id']}, fixed in {', '.join(v['fix_versions']) or 'none'}"
        for d in dependencies
        for v in d.get("vulns", ())
    ]
    unanswered = [d["name"] for d in dependencies if "skip_reason" in d]
    return Findings(tuple(vulnerable), tuple(unanswered))


def ask_index(pip_audit: str, lock: str) -> Findings:
    """Ask about one lock file; ValueError with pip-audit's own words if it can't be done."""
    command = [pip_audit, "--disable-pip", "--require-hashes", "--progress-spinner=off"]
    ended = subprocess.run(  # noqa: S603  a program of ours, from a lock file
        [*command, "--format=json", "--requirement", lock],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    try:
        return read_findings(ended.stdout)
    except ValueError as error:
        words = ended.stderr.strip().splitlines() or ["no reason given"]
        raise ValueError(f"{error}: {words[-1]}") from error


def tree_problems() -> Iterator[str]:
    """Yield what is wrong with the tree itself."""
    for lock in LOCKS:
        for name in loose_requirements((ROOT / lock).read_text(encoding="utf-8")):
            yield f"{lock}: {name} is not pinned to a version with hashes"
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607  whichever git the developer has
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    for file in key_material(files):
        yield f"{file}: holds what looks like a key"


def main(pip_audit: str) -> int:
    """Ask everything, tell everything, and return the exit code."""
    problems = list(tree_problems())
    unanswered: set[str] = set()
    for lock in LOCKS:
        try:
            findings = ask_index(pip_audit, lock)
        except ValueError as error:
            problems.append(f"{lock}: not audited: {error}")
            continue
        problems += [f"{lock}: {text}" for text in findings.vulnerable]
        unanswered |= set(findings.unanswered)
    if unanswered:
        problems.append(
            f"not audited: nobody answered about {len(unanswered)} packages "
            f"({', '.join(sorted(unanswered)[:5])} ...). The public package index, which has the "
            "advisories, could not be reached, so nothing is known about them: run it where it can"
        )
    for problem in problems:
        print(problem, file=sys.stderr)
    print("audit failed" if problems else "nothing known against what is locked")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
