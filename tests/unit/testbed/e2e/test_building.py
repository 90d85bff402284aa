"""Which suite: that of the bed's version."""

import io
import re

from testbed.e2e.building import MODULE_DIR, ensure_suite
from testbed.versions import MODULE_DIR as CONTROL_PLANE_DIR
from testbed.versions import read_versions


def versions_in(go_mod, pattern):
    return set(re.findall(pattern, (go_mod / "go.mod").read_text("utf-8"), re.MULTILINE))


def test_the_suite_is_of_the_release_the_test_bed_runs():
    (required,) = versions_in(MODULE_DIR, r"^\tk8s\.io/kubernetes (v\S+)$")
    assert required == read_versions().kubernetes


def test_modules_published_beside_kubernetes_are_those_of_the_test_bed():
    replaced = r"^\t(\S+ => \S+ v\S+)$"
    assert versions_in(MODULE_DIR, replaced) == versions_in(CONTROL_PLANE_DIR, replaced)
    assert len(versions_in(MODULE_DIR, replaced)) > 20


def test_it_is_named_after_that_release(tmp_path, module_dir, fake_go):
    built = ensure_suite(cache=tmp_path / "cache", module_dir=module_dir, screen=io.StringIO())
    assert (built.name, built.parent.parent.name) == ("e2e", "e2e")
    assert built.parent.name.startswith(f"{read_versions().kubernetes}-")
    assert any(f"gitVersion={read_versions().kubernetes}" in call for call in fake_go.calls)
