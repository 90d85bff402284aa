import threading
from pathlib import Path

import pytest

from testbed.cache import build_key, cache_root, exclusive
from testbed.versions import read_versions


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"K8S_SCHEDULER_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c", id="own first"),
        pytest.param({"XDG_CACHE_HOME": "/x"}, "/x/k8s-scheduler", id="then XDG"),
        pytest.param({}, "/home/u/.cache/k8s-scheduler", id="then home"),
        pytest.param(
            {"XDG_CACHE_HOME": "rel"}, "/home/u/.cache/k8s-scheduler", id="relative XDG ignored"
        ),
    ],
)
def test_cache_is_found_by_environment(monkeypatch, environ, expected):
    monkeypatch.setenv("HOME", "/home/u")
    assert cache_root(environ) == Path(expected)


class TestBuildKey:
    """Same inputs, same key; any other input, another key."""

    def key(self, module_dir, *recipe: str) -> str:
        return build_key(module_dir, read_versions(module_dir).kubernetes, recipe=recipe)

    def test_names_the_version(self, module_dir):
        assert self.key(module_dir).startswith("v1.37.1-")

    def test_is_the_same_for_the_same_inputs(self, module_dir):
        assert self.key(module_dir, "flag") == self.key(module_dir, "flag")

    @pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
    def test_changes_with_each_file(self, module_dir, name):
        before = self.key(module_dir)
        file = module_dir / name
        file.write_text(file.read_text() + "// more\n")
        assert self.key(module_dir) != before

    def test_changes_with_the_recipe(self, module_dir):
        assert self.key(module_dir, "a", "b") != self.key(module_dir, "ab")

    def test_changes_with_the_machine(self, module_dir, monkeypatch):
        before = self.key(module_dir)
        monkeypatch.setattr("platform.machine", lambda: "another")
        assert self.key(module_dir) != before

    def test_does_not_depend_on_where_the_tree_is(self, module_dir, tmp_path):
        before = self.key(module_dir)
        assert self.key(module_dir.rename(tmp_path / "elsewhere")) == before


def test_second_holder_is_told_that_it_waits_and_then_gets_the_lock(tmp_path):
    lock, order, waits = tmp_path / "x.lock", [], threading.Event()

    def second() -> None:
        with exclusive(lock, on_wait=waits.set):
            order.append("second")

    with exclusive(lock, on_wait=lambda: order.append("must not wait")):
        other = threading.Thread(target=second)
        other.start()
        assert waits.wait(timeout=10)
        order.append("first")
    other.join()
    assert order == ["first", "second"]
