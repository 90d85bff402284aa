"""Metrics as documented (docs/metrics.md) and as served (Prometheus text), in one form."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from k8s_scheduler.obs.metric_set import exponential

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"

_LEVEL = re.compile(r"^\[(?P<level>[A-Z]+)\]")
_EXPONENTIAL = re.compile(r"exp\((?P<start>[\d.]+), (?P<factor>[\d.]+), (?P<count>\d+)\)")
_LABEL = re.compile(r"`(\w+)`")
# Type, labels and meaning; other tables have other columns.
_CELLS = 3


@dataclass(frozen=True)
class Family:
    """One metric. `labels` is None if no sample shows them."""

    kind: str
    labels: frozenset[str] | None
    buckets: tuple[float, ...]
    level: str = ""


def served(text: str) -> dict[str, Family]:
    """Read a page as it is served; names are those on the wire."""
    families = {}
    for family in text_string_to_metric_families(text):
        labels, buckets = None, set()
        for sample in family.samples:
            if "le" in sample.labels:
                buckets.add(float(sample.labels["le"]))
            found = frozenset(sample.labels) - {"le", "quantile"}
            assert labels in (None, found), f"{family.name} has samples with different labels"
            labels = found
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if family.type == "counter" and all(s.name == family.name for s in family.samples):
            # A counter that is not called so, as old ones are.
            name = family.name if family.samples else name
        level = _LEVEL.match(family.documentation)
        families[name] = Family(
            family.type,
            labels,
            tuple(sorted(buckets - {float("inf")})),
            level["level"].lower() if level else "-",
        )
    return families


def documented() -> dict[str, Family]:
    """Read the tables of metrics that there are."""
    families = {}
    for name, *cells in _rows(PAGE.read_text().replace(_left_out_text(), "")):
        if re.fullmatch(r"[a-z0-9_]+", name) and len(cells) == _CELLS:
            kind, labels, _meaning = cells
            word, _, bounds = kind.partition(", ")
            families[name] = Family(word, frozenset(_LABEL.findall(labels)), _buckets(bounds))
    return families


def left_out() -> dict[str, tuple[str, str]]:
    """Read the table of metrics that there are not: pattern -> level, reason."""
    return {name: (level, why) for name, level, why in _rows(_left_out_text())}


def entry_for(name: str) -> str | None:
    """Return the entry by which a metric is left out."""
    return next((pattern for pattern in left_out() if fnmatchcase(name, pattern)), None)


def _left_out_text() -> str:
    found = re.search(r"^## Left out$.*?(?=^## )", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found, "docs/metrics.md has no section 'Left out'"
    return found[0]


def _rows(text: str) -> list[list[str]]:
    lines = re.findall(r"^\| `([^`]+)` \|(.+)\|$", text, re.MULTILINE)
    return [[name, *(cell.strip() for cell in rest.split("|"))] for name, rest in lines]


def _buckets(text: str) -> tuple[float, ...]:
    if found := _EXPONENTIAL.fullmatch(text):
        start, factor = float(found["start"]), float(found["factor"])
        return exponential(start, factor, int(found["count"]))
    return tuple(float(bound) for bound in text.strip("()").split(", ") if bound)
