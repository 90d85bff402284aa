"""Health as kube-scheduler shows it: named checks, and one page each for livez, healthz, readyz.

A check answers None when all is well, and otherwise says in a few words what is not. Checks are
asked on the event loop with every probe, so they only look at state and never wait. Unlike
kube-scheduler the page says the reason: an operator reads it, and it holds no secret.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be so; `ask` returns None or what is wrong."""

    name: str
    ask: Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Page:
    """What a probe gets."""

    status: int
    text: str


def health_page(endpoint: str, checks: Sequence[Check], *, verbose: bool, role: str | None) -> Page:
    """Ask all checks and write the page; `role` is what leader election made of this process."""
    answers = [(check.name, _ask(check)) for check in checks]
    failed = any(problem is not None for _, problem in answers)
    lines = [
        f"[+]{name} ok" if problem is None else f"[-]{name} failed: {problem}"
        for name, problem in answers
        if verbose or problem is not None
    ]
    if failed:
        lines.append(f"{endpoint} check failed")
    elif verbose:
        lines.append(f"{endpoint} check passed")
    else:
        lines.append("ok")
    if role is not None:
        lines.append(f"role: {role}")
    if len(lines) == 1 and not failed and not verbose:
        # Exactly kube-scheduler's answer, without a line break: some probes compare it.
        return Page(200, lines[0])
    return Page(503 if failed else 200, "\n".join(lines) + "\n")


def _ask(check: Check) -> str | None:
    try:
        return check.ask()
    except Exception as error:
        # Whatever it raises: a check that cannot be asked has failed.
        fields = {"check": check.name}
        logger.warning("Health check raised", exc_info=True, extra={"fields": fields})
        return f"{type(error).__name__}: {error}"
