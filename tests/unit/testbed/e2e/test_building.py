"""The suite is built once, from the bed's version."""

import io
import re

import pytest

from testbed.e2e.building import MODULE_DIR, ensure_suite
from testbed.errors import BuildError
from testbed.versions import MODULE_DIR as CONTROL_PLANE_DIR
from testbed.versions import read_versions

FAKE_GO = """#!/bin/sh
echo "$*" >> "{log}"
case "$1 $2" in
  "env GOVERSION") echo go99.0.0 ;;
  "list -deps") printf 'one\\ntwo\\n' ;;
  "build -v")
    [ -e "{broken}" ] && {{ echo "main.go:3: undefined: nothing" >&2; exit 1; }}
    while [ "$1" != -o ]; do shift; done
    echo program > "$2" ;;
esac
"""


@pytest.fixture
def build(tmp_path, module_dir, program, monkeypatch):
    """Build with a Go that compiles by writing a word."""
    log = tmp_path / "go.log"
    log.touch()
    program(tmp_path / "bin" / "go", FAKE_GO.format(log=log, broken=tmp_path / "broken"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    def run():
        built = ensure_suite(cache=tmp_path / "cache", module_dir=module_dir, screen=io.StringIO())
        return built, log.read_text().splitlines()

    return run


def versions_in(go_mod, pattern):
    return set(re.findall(pattern, (go_mod / "go.mod").read_text("utf-8"), re.MULTILINE))


def test_the_suite_is_of_the_release_the_test_bed_runs():
    (required,) = versions_in(MODULE_DIR, r"^\tk8s\.io/kubernetes (v\S+)$")
    assert required == read_versions().kubernetes


def test_modules_published_beside_kubernetes_are_those_of_the_test_bed():
    replaced = r"^\t(\S+ => \S+ v\S+)$"
    assert versions_in(MODULE_DIR, replaced) == versions_in(CONTROL_PLANE_DIR, replaced)
    assert len(versions_in(MODULE_DIR, replaced)) > 20


def test_a_second_run_uses_the_first_one_s_program(build):
    built, calls = build()
    assert built.read_text() == "program\n"
    assert built.parent.name.startswith(f"{read_versions().kubernetes}-")
    assert sum(call.startswith("build -v") for call in calls) == 1
    assert build() == (built, calls)


def test_changed_sources_are_another_program(build, module_dir):
    built, _ = build()
    (module_dir / "main.go").write_text("package main // changed\n")
    again, _ = build()
    assert again != built


def test_a_failed_build_leaves_nothing_and_can_be_repeated(build, tmp_path):
    (tmp_path / "broken").touch()
    with pytest.raises(BuildError, match="undefined: nothing"):
        build()
    assert [path.name for path in (tmp_path / "cache" / "e2e").glob("*/*")] == ["lock"]
    (tmp_path / "broken").unlink()
    assert build()[0].exists()
