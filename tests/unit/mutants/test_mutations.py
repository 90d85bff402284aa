"""Which mutants there are of a source, and which tests judge them."""

import textwrap
from pathlib import Path

import pytest

from tests.mutants.mutations import mutations_of
from tests.mutants.trying import Tree, Trial, run_tests, stages_for

ROOT = Path(__file__).parents[3]


def mutants(body):
    """Return the mutants of a function's body, as (old, new)."""
    source = "async def f(self, x: int | None = 0) -> bool:\n" + textwrap.indent(body, "    ")
    found = [m for m in mutations_of(Path("m.py"), source) if m.compiles()]
    return [(m.source[m.start : m.end].strip(), m.text) for m in found]


class TestMutations:
    """One token becomes another."""

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("return x is None", [("is", "is not")]),
            ("return x is not None", [("is not", "is")]),
            ("return x not in y", [("not in", "in")]),
            ("return not x", [("not", "")]),
            ("return a and b", [("and", "or")]),
            ("return 'ä' < b", [("<", "<=")]),
            ("self.pop(x)", [("self.pop(x)", "pass")]),
            ("await g(x)", [("await g(x)", "pass")]),
            ("return g(*x)", []),
            ("for a in x: g(a)", [("g(a)", "pass")]),
            ("y: int | None = -1", [("-", "+"), ("1", "2")]),
        ],
    )
    def test_of_a_line(self, body, expected):
        assert mutants(body) == expected

    def test_what_is_outside_of_functions_is_left_alone(self):
        source = "LIMIT = 1 + 1\n\n@cache(1)\ndef f(x=1):\n    return LIMIT\n"
        assert mutations_of(Path("m.py"), source) == []

    def test_a_mutant_differs_in_its_line_alone(self):
        [mutation] = mutations_of(Path("m.py"), "def f(a, b):\n    # ä\n    return a == b\n")
        assert mutation.applied() == "def f(a, b):\n    # ä\n    return a != b\n"
        assert mutation.difference() == "-     return a == b\n+     return a != b"
        assert str(mutation) == "m.py:3  == -> !="


class TestStages:
    """The tests named after the module come first."""

    def test_become_wider(self):
        path = Path("k8s_scheduler/kube/watch/reflector.py")
        named, *wider = stages_for(path, ROOT)
        assert "tests/unit/kube/watch/test_reflector.py" in named
        assert wider == [("tests/unit/kube/watch",), ("tests/unit/kube",)]

    def test_a_folder_without_tests_is_passed_over(self):
        path = Path("k8s_scheduler/kube/nowhere/at_all.py")
        assert stages_for(path, ROOT) == [("tests/unit/kube",)]


class TestTrial:
    """A mutant is judged in a copy."""

    @pytest.mark.parametrize(
        ("with_it", "without", "outcome"),
        [
            (1, 0, "found, by test_m.py"),
            (None, 0, "found, hung test_m.py"),
            (0, 0, "SURVIVED test_m.py"),
            (1, 1, "test_m.py fails without it"),
        ],
    )
    def test_by_what_the_tests_say(self, tmp_path, with_it, without, outcome):
        path = tmp_path / "m.py"
        path.write_text("def f(a, b):\n    return a <= b\n")
        [mutation] = mutations_of(Path("m.py"), path.read_text())

        def run(copy, stage, seconds):
            return with_it if (copy / "m.py").read_text() == mutation.applied() else without

        with Tree(tmp_path) as tree:
            assert Trial(tree, seconds=60, run=run).judge(mutation, [("test_m.py",)]) == outcome
        assert path.read_text() == mutation.source
        assert not tree.copy.exists()

    def test_tests_that_do_not_end_are_ended(self, tmp_path):
        (tmp_path / "test_m.py").write_text("while True: pass\n")
        assert run_tests(tmp_path, ("test_m.py",), 0.0) is None
