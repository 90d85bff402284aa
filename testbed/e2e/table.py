"""Both columns side by side, and the verdict: what passes with kube-scheduler passes with ours.

What fails or is skipped with both says nothing about a scheduler; it needs a kubelet or a network
that a bed does not have. It is shown all the same, with the reason.
"""

from collections.abc import Mapping, Sequence

from testbed.compiling import elapsed
from testbed.e2e.column import Column
from testbed.e2e.suite import Outcome, Spec

_WIDTH = 16
_REASON_WIDTH = 160
_NOT_RUN = "-"


def table(columns: Sequence[Column], chosen: Sequence[str]) -> str:
    """Return a line for each spec, sorted by name, and the sums."""
    by_name = [_by_name(column) for column in columns]
    lines = [_row([column.scheduler for column in columns], "spec")]
    lines += [_row([_cell(specs.get(name)) for specs in by_name], name) for name in sorted(chosen)]
    lines.append("")
    for outcome in Outcome:
        counts = [sum(s.outcome is outcome for s in column.specs) for column in columns]
        lines.append(_row([str(count) for count in counts], outcome.value))
    missing = [len(set(chosen) - set(specs)) for specs in by_name]
    if any(missing):
        lines.append(_row([str(count) for count in missing], "did not run"))
    lines.append(_row([elapsed(column.seconds) for column in columns], "all in all"))
    return "\n".join(line.rstrip() for line in lines)


def reasons(columns: Sequence[Column]) -> str:
    """Return what went wrong or was missing, spec by spec; empty if all passed."""
    told: dict[str, list[str]] = {}
    for column in columns:
        for spec in column.specs:
            if spec.outcome is not Outcome.PASS:
                text = spec.reason[:_REASON_WIDTH] or "no reason given"
                told.setdefault(spec.name, []).append(
                    f"  {column.scheduler}, {spec.outcome.value}: {text}"
                )
    return "\n".join("\n".join([name, *told[name]]) for name in sorted(told))


def shortfall(upstream: Column, ours: Column) -> list[str]:
    """Return the specs that pass with kube-scheduler and not with ours, sorted."""
    return sorted(_passed(upstream) - _passed(ours))


def _passed(column: Column) -> set[str]:
    return {spec.name for spec in column.specs if spec.outcome is Outcome.PASS}


def _by_name(column: Column) -> Mapping[str, Spec]:
    return {spec.name: spec for spec in column.specs}


def _cell(spec: Spec | None) -> str:
    if spec is None:
        return _NOT_RUN
    if spec.outcome is Outcome.SKIP:
        return spec.outcome.value
    return f"{spec.outcome.value} {spec.seconds:6.1f} s"


def _row(cells: Sequence[str], name: str) -> str:
    return "".join(f"{cell:{_WIDTH}}" for cell in cells) + name
