"""docs/plugins.md says what the code says."""

import json
import re
from pathlib import Path

import pytest

from k8s_scheduler.api.config.arguments import default_args
from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.framework.dependencies import Object, Row, looks_elsewhere
from k8s_scheduler.core.framework.plugin import POINTS
from k8s_scheduler.core.framework.registry import ProfilePlace, facts_of
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.core.state.news.changes import EVENT_LABELS
from k8s_scheduler.core.state.news.facts import COLUMNS
from tests.builders import make_node, make_pod
from tests.unit.core.harness import Harness, only

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "plugins.md").read_text(encoding="utf-8")
LOUD = {"example.com/noise": "loud"}
LOW = {"example.com/noise": "low"}
QUIET = {"example.com/wants": "quiet"}


def table(heading):
    """Return the cells of the first table of a section, row by row."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [[c.strip() for c in row.strip("|").split("|")] for row in rows[0].splitlines()[2:]]


def code(names):
    return ", ".join(f"`{name}`" for name in names)


def points_of(name):
    """Return the points at which a plugin does something, in the order of a pod's way."""
    registration = BUILT_INS[name]
    found = registration.points & registration.facts.points
    return ", ".join(point for point in POINTS if point in found)


def weight_of(name):
    facts = BUILT_INS[name].facts
    return str(facts.default_weight or 1) if "score" in facts.points else ""


def reads_of(name):
    """Return the cells that tell a plugin's declarations, in the order of the code."""
    declared = BUILT_INS[name].kind.depends_on
    columns = [d.column for d in declared if isinstance(d, Row)]
    return [
        name,
        code(c for c in columns if not c.startswith("pods/")),
        code(c for c in columns if c.startswith("pods/")),
        ", ".join(d.kind.name for d in declared if isinstance(d, Object)),
    ]


def events_of(change):
    return code(label for bit, label in EVENT_LABELS.items() if change & bit)


def test_every_plugin_is_told_in_the_order_in_which_they_run():
    assert [row[0] for row in table("What they do")] == list(BUILT_INS)


@pytest.mark.parametrize("row", table("What they do"), ids=lambda row: row[0])
def test_points_weights_and_texts_are_those_of_the_code(row):
    told = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", row[3])
    documentation = " ".join(BUILT_INS[row[0]].kind.__doc__.split())
    assert [*row[1:3], told] == [points_of(row[0]), weight_of(row[0]), documentation]


def test_what_plugins_read_is_what_they_declare():
    assert table("What they read") == [reads_of(name) for name in BUILT_INS]


def test_every_column_is_explained_with_the_events_that_follow_from_it():
    listed = [entry for entry in COLUMNS if entry.events is not None]
    assert table("Columns and events") == [
        [
            f"`{entry.name}`",
            entry.holds,
            events_of(entry.events),
            "all nodes" if looks_elsewhere(Row(entry.name)) else "",
        ]
        for entry in listed
    ]
    declared = {
        d.column for r in BUILT_INS.values() for d in r.kind.depends_on if isinstance(d, Row)
    }
    assert declared <= {entry.name for entry in listed}


def test_every_reason_is_listed_with_its_text():
    listed = [[f"`{r.code}`", r.text] for b in BUILT_INS.values() for r in b.kind.reasons]
    assert table("Reasons") == listed


WITH_ARGUMENTS = [name for name, r in facts_of(BUILT_INS).items() if r.arguments]


@pytest.mark.parametrize("name", WITH_ARGUMENTS)
def test_arguments_are_in_the_configuration_page_with_their_defaults(name):
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert f"\n| {name} |" in page
    rows = page.split(f"\n| {name} |")[1].split("\n\n")[0]
    registration = BUILT_INS[name]
    assert (f"### {name}\n" in page) == (registration.place is ProfilePlace.NAMED)
    for argument, default in default_args(registration.arguments).items():
        assert f"`{argument}" in rows
        if isinstance(default, bool | str | int):
            shown = (
                str(default) if type(default) is int else f"`{json.dumps(default).strip(chr(34))}`"
            )
            assert f"`{argument}` | {shown} |" in rows


class TestTheExample:
    """The plugin that the page shows, run as the page says."""

    @pytest.fixture
    def h(self):
        shown = {}
        for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(block, shown)
        assert isinstance(shown["setup"], Setup)
        return Harness(shown["setup"])

    def test_it_rejects_and_says_why(self, h):
        h.node(make_node("n").label(**LOUD).obj())
        h.pod(make_pod("sleeper").label(**QUIET).obj())
        h.pod(make_pod("other").obj())
        assert [bind.name for bind in h.binds()] == ["other"]
        ((name, _, note),) = h.events()
        assert name == "sleeper"
        assert note.startswith("0/1 nodes are available: 1 node(s) were too loud.")

    def test_a_label_that_changes_wakes_its_pods(self, h):
        h.node(make_node("n").label(**LOUD).obj())
        h.pod(make_pod("sleeper").label(**QUIET).obj())
        assert h.binds() == []
        h.node(make_node("n").label(**LOW).obj())
        h.tick(2)
        assert only(Bind, h.schedule())
