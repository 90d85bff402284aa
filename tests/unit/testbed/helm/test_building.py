"""Helm is built once, in the version that go.mod pins."""

import io

import pytest

from testbed.errors import BuildError, TestbedError
from testbed.helm.building import ensure_helm, helm_version

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
def module_dir(tmp_path):
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("require (\n\thelm.sh/helm/v3 v3.1.2 // indirect\n)\n")
    (folder / "go.sum").write_text("sums\n")
    return folder


@pytest.fixture
def build(tmp_path, module_dir, program, monkeypatch):
    """Build with a Go that compiles by writing a word."""
    log = tmp_path / "go.log"
    log.touch()
    program(tmp_path / "bin" / "go", FAKE_GO.format(log=log, broken=tmp_path / "broken"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    def run():
        built = ensure_helm(cache=tmp_path / "cache", module_dir=module_dir, screen=io.StringIO())
        return built, log.read_text().splitlines()

    return run


def test_a_second_run_uses_the_first_one_s_program(build):
    built, calls = build()
    assert built.read_text() == "program\n"
    assert built.parent.name.startswith("v3.1.2-")
    assert sum(call.startswith("build -v") for call in calls) == 1
    assert build() == (built, calls)


def test_another_version_is_another_program(build, module_dir):
    first, _ = build()
    (module_dir / "go.sum").write_text("other sums\n")
    second, _ = build()
    assert first != second


def test_a_failed_build_leaves_nothing_behind(build, tmp_path):
    (tmp_path / "broken").touch()
    with pytest.raises(BuildError, match="undefined: nothing"):
        build()
    assert list((tmp_path / "cache").rglob("helm/*/*/helm")) == []
    assert not list((tmp_path / "cache").rglob("scratch-*"))


def test_the_tree_s_own_go_mod_says_which(module_dir):
    assert helm_version().startswith("v3.")
    (module_dir / "go.mod").write_text("module m\n")
    with pytest.raises(TestbedError, match=r"does not require helm\.sh"):
        helm_version(module_dir)
