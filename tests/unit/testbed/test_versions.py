import pytest

from testbed.errors import TestbedError
from testbed.versions import read_versions


def test_versions_come_from_go_mod(module_dir):
    versions = read_versions(module_dir)
    assert (versions.go, versions.kubernetes) == ("1.26.0", "v1.37.1")
    assert versions.of("etcd") == "v3.7.0"
    assert versions.of("kwok") == "v0.8.0"
    assert versions.of("kube-scheduler") == "v1.37.1"


def test_the_module_of_this_tree_pins_the_projects_baseline():
    assert read_versions().kubernetes == "v1.37.1"


@pytest.mark.parametrize("missing", ["go 1.26.0", "\tk8s.io/kubernetes v1.37.1"])
def test_go_mod_without_a_needed_line_is_refused(module_dir, missing):
    text = (module_dir / "go.mod").read_text()
    (module_dir / "go.mod").write_text(text.replace(missing, ""))
    with pytest.raises(TestbedError, match=r"go\.mod"):
        read_versions(module_dir)
