"""What runs of the registered beds, for people to read.

Everything here comes from records and from asking the components; nothing is changed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed import health
from testbed.commands import Plan
from testbed.layout import Layout
from testbed.options import OPTIONAL, BedOptions
from testbed.registry import Record

_HEADER = ("COMPONENT", "PID", "RSS", "PORT", "HEALTH")


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One line of the table."""

    component: str
    pid: int | None
    rss_bytes: int
    port: int | None
    trouble: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text, column by column."""
        return (
            self.component,
            str(self.pid or "-"),
            f"{self.rss_bytes // 2**20} MiB" if self.pid else "-",
            str(self.port or "-"),
            self.trouble or "ok",
        )


def plan_of(record: Record) -> Plan:
    """Return the plan of a bed that another process opened, as far as it is needed to use it."""
    optional = tuple(name for name in OPTIONAL if name in record.ports)
    return Plan(
        layout=Layout(record.state_dir),
        ports=record.ports,
        options=BedOptions(components=optional),
    )


def inspect(record: Record) -> list[ComponentStatus]:
    """Ask every component of a bed."""
    plan = plan_of(record)
    components = plan.options.all_components
    programs = [name for name in record.processes if name not in components]
    return [
        *(_inspect(record, plan, name) for name in components),
        *(_inspect_program(record, name) for name in programs),
    ]


def table(lines: Iterable[ComponentStatus]) -> Iterator[str]:
    """Yield the lines of a table with aligned columns."""
    rows = [_HEADER, *(line.cells for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _inspect(record: Record, plan: Plan, name: str) -> ComponentStatus:
    process = record.processes.get(name)
    if process is None or not process.is_alive():
        return ComponentStatus(name, None, rss_bytes=0, port=record.ports[name], trouble="down")
    return ComponentStatus(
        name,
        process.pid,
        rss_bytes=process.rss_bytes(),
        port=record.ports[name],
        trouble=health.complaint(name, plan),
    )


def _inspect_program(record: Record, name: str) -> ComponentStatus:
    """Look at a program that somebody added to the bed; only it knows what health is."""
    process = record.processes[name]
    alive = process.is_alive()
    return ComponentStatus(
        name,
        process.pid if alive else None,
        rss_bytes=process.rss_bytes(),
        port=None,
        trouble="" if alive else "down",
    )
