"""A program is built once for all that it is made of."""

import io

import pytest

from testbed.errors import BuildError
from testbed.programs import Program, ensure_program


@pytest.fixture
def build(tmp_path, module_dir, fake_go):
    """Build; return the program, and what Go was called with so far."""
    wanted = Program(
        name="tool",
        title="the tool",
        release="v1",
        version="v1",
        module_dir=module_dir,
        flags=("-trimpath",),
        takes="a moment",
    )

    def run(screen=None):
        built = ensure_program(wanted, cache=tmp_path / "cache", screen=screen or io.StringIO())
        return built, fake_go.calls

    return run


def test_a_second_run_uses_the_first_one_s_program(build, tmp_path):
    built, calls = build()
    assert built.read_text() == "#!/bin/sh\n"
    assert (built.name, built.parent.parent) == ("tool", tmp_path / "cache" / "tool")
    assert built.parent.name.startswith("v1-")
    assert sum(call.startswith("build -v") for call in calls) == 1
    assert build() == (built, calls)


def test_it_says_what_it_does_and_how_long_that_is(build):
    screen = io.StringIO()
    build(screen)
    assert "building the tool v1 with Go 1.26.8; a moment, later runs" in screen.getvalue()
    assert "built the tool in" in screen.getvalue()


def test_changed_sources_are_another_program(build, module_dir):
    built, _ = build()
    (module_dir / "main.go").write_text("package main // changed\n")
    again, _ = build()
    assert again != built


def test_a_failed_build_leaves_nothing_and_can_be_repeated(build, fake_go, tmp_path):
    fake_go.break_compiler()
    with pytest.raises(BuildError, match="undefined: nothing"):
        build()
    assert [path.name for path in (tmp_path / "cache" / "tool").glob("*/*")] == ["lock"]
    fake_go.repair_compiler()
    assert build()[0].exists()
