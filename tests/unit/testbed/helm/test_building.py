"""Which helm: the one that go.mod pins."""

import io

import pytest

from testbed.errors import TestbedError
from testbed.helm.building import ensure_helm, helm_version


@pytest.fixture
def module_dir(tmp_path):
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("require (\n\thelm.sh/helm/v3 v3.1.2 // indirect\n)\n")
    (folder / "go.sum").write_text("sums\n")
    return folder


def test_it_is_the_version_of_go_mod_with_these_sums(tmp_path, module_dir, fake_go):
    def build():
        return ensure_helm(cache=tmp_path / "cache", module_dir=module_dir, screen=io.StringIO())

    built = build()
    assert (built.name, built.parent.parent.name) == ("helm", "helm")
    assert built.parent.name.startswith("v3.1.2-")
    assert fake_go.calls[-1].endswith("helm.sh/helm/v3/cmd/helm")
    (module_dir / "go.sum").write_text("other sums\n")
    assert build() != built


def test_the_tree_s_own_go_mod_says_which(module_dir):
    assert helm_version().startswith("v3.")
    (module_dir / "go.mod").write_text("module m\n")
    with pytest.raises(TestbedError, match=r"does not require helm\.sh"):
        helm_version(module_dir)
