"""Charts of the benchmark: workloads one below the other, a bar or a dot for each scheduler.

A panel has a scale of its own. Where values differ by orders of magnitude it is logarithmic, and
has dots instead of bars: the length of a bar would mean nothing.
"""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.bench.svg import GRID, INK, PALE, Picture

# Told apart by whoever sees colours in whatever way, and in grey.
COLOURS = ("#0072b2", "#e69f00", "#999999", "#009e73")

_LEFT, _RIGHT = 126.0, 20.0
_PANEL, _BETWEEN = 560.0, 36.0
_LABEL = 62.0
_BAR, _GROUP_GAP = 15.0, 12.0
# How wide a character of the size is, by the widest of the usual fonts.
_CHARACTERS = {11: 6.0, 12: 6.7}
_LINE = 15.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One scheduler in one group: what is shown, and the single runs it is the median of."""

    value: float
    runs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure, by group and by scheduler; who has no value has no bar."""

    title: str
    bars: Mapping[tuple[str, str], Bar]
    is_logarithmic: bool = False
    digits: int = 0

    def shown(self, value: float) -> str:
        """Return a value as it is labelled."""
        return f"{value:,.{self.digits}f}"


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels side by side, over the same groups and schedulers."""

    title: str
    subtitle: str
    groups: Sequence[str]
    series: Sequence[str]
    panels: Sequence[Panel]
    caption: Sequence[str] = field(default_factory=tuple)


def draw(chart: Chart) -> str:
    """Return the chart as SVG."""
    picture = Picture(chart.title, " ".join((chart.subtitle, *chart.caption)))
    panel_width = (_PANEL - _BETWEEN * (len(chart.panels) - 1)) / len(chart.panels)
    width = _LEFT + _PANEL + _RIGHT
    picture.write(20, 28, chart.title, size=17, is_bold=True)
    y = _paragraph(picture, [chart.subtitle], y=47, size=12, width=width)
    _legend(picture, chart.series, y=y + 8)
    top = y + 50
    group_height = _BAR * len(chart.series) + _GROUP_GAP
    bottom = top + group_height * len(chart.groups)
    for number, group in enumerate(chart.groups):
        middle = top + group_height * number + (group_height - _GROUP_GAP) / 2
        picture.write(_LEFT - 10, middle + 4, group, anchor="end")
    for number, panel in enumerate(chart.panels):
        left = _LEFT + number * (panel_width + _BETWEEN)
        picture.write(left, top - 12, panel.title, size=12, is_bold=True)
        picture.line((left, top - 4), (left, bottom - 4), stroke=GRID)
        scale = _scale(panel, panel_width - _LABEL)
        for row, group in enumerate(chart.groups):
            for place, name in enumerate(chart.series):
                if (bar := panel.bars.get((group, name))) is not None:
                    y = top + group_height * row + _BAR * place
                    _bar(picture, panel, bar, scale, at=(left, y), colour=COLOURS[place])
    end = _paragraph(picture, chart.caption, y=bottom + 22, size=11, width=width)
    return picture.text(width, end + 6)


def _legend(picture: Picture, series: Sequence[str], *, y: float) -> None:
    x = 20.0
    for name, colour in zip(series, COLOURS, strict=False):
        picture.rectangle(x, y - 10, 12, 12, fill=colour)
        picture.write(x + 18, y, name)
        x += 18 + len(name) * 7 + 24


def _scale(panel: Panel, room: float) -> Callable[[float], float]:
    """Return what makes a length of a value."""
    values = [value for bar in panel.bars.values() for value in (bar.value, *bar.runs)]
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    if not panel.is_logarithmic:
        return lambda value: room * value / largest if largest else 0.0
    smallest = min((value for value in values if value > 0), default=1.0)
    # From the power of ten below the least of them.
    low = math.floor(math.log10(smallest))
    span = max(math.log10(max(largest, smallest)) - low, 1e-9)
    return lambda value: room * max(0.0, (math.log10(max(value, 10.0**low)) - low) / span)


def _bar(
    picture: Picture,
    panel: Panel,
    bar: Bar,
    scale: Callable[[float], float],
    *,
    at: tuple[float, float],
    colour: str,
) -> None:
    left, y = at
    middle = y + (_BAR - 2) / 2
    length = scale(bar.value)
    if panel.is_logarithmic:
        picture.line((left, middle), (left + length, middle), stroke=GRID)
        picture.dot(left + length, middle, 4.5, fill=colour)
    else:
        picture.rectangle(left, y, length, _BAR - 2, fill=colour)
    for run in bar.runs:
        picture.dot(left + scale(run), middle, 2.0, fill="#ffffff", stroke=INK)
    end = max((length, *(scale(run) for run in bar.runs)))
    picture.write(left + end + 8, middle + 4, panel.shown(bar.value), size=11)


def _paragraph(
    picture: Picture, lines: Sequence[str], *, y: float, size: int, width: float
) -> float:
    """Write lines, broken where they are too long; return where the next one would be."""
    characters = int((width - 40) / _CHARACTERS[size])
    for line in lines:
        for part in textwrap.wrap(line, characters):
            picture.write(20, y, part, size=size, fill=PALE)
            y += _LINE
    return y
