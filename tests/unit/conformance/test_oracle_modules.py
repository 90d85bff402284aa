"""The oracle's module for another release follows from that release's own go.mod."""

import pytest

from testbed.errors import BuildError
from testbed.versions import read_versions
from tests.conformance.oracle.modules import go_mod_for, pinned, release, write_module

KUBERNETES_GO_MOD = """\
module k8s.io/kubernetes

go 1.27.3

require (
	github.com/a/b v1.0.0
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.150.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/new-module => ./staging/src/k8s.io/new-module
)
"""


def test_the_oracle_is_of_the_release_the_test_bed_runs():
    assert pinned().version == read_versions().kubernetes


@pytest.mark.parametrize("text", ["v1.36.4", "1.36.4"])
def test_a_release_knows_its_modules(text):
    found = release(text)
    assert (found.version, found.staged) == ("v1.36.4", "v0.36.4")


def test_pre_releases_count():
    assert release("v1.38.0-rc.1").staged == "v0.38.0-rc.1"


@pytest.mark.parametrize("text", ["", "v1.36", "latest", "v2.0.0", "v1.36.4; rm"])
def test_what_is_no_release_is_refused(text):
    with pytest.raises(BuildError, match=r"write it as v1\.36\.4"):
        release(text)


@pytest.mark.parametrize(
    ("version", "tags"), [("v1.36.4", "kube136"), ("v1.37.0", ""), ("v1.38.0", "")]
)
def test_the_generation_follows_the_release(version, tags):
    assert release(version).tags == tags


def test_every_staged_module_is_replaced():
    text = go_mod_for(release("v1.38.0"), KUBERNETES_GO_MOD)
    assert "go 1.27.3\n" in text
    assert "\tk8s.io/kubernetes v1.38.0\n" in text
    assert "\tk8s.io/klog/v2 v2.150.0\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.38.0\n" in text
    assert "\tk8s.io/new-module => k8s.io/new-module v0.38.0\n" in text


def test_a_go_mod_of_another_form_is_refused():
    with pytest.raises(BuildError, match="not what it used to be"):
        go_mod_for(release("v1.38.0"), "module k8s.io/kubernetes\n")


def test_a_module_has_the_oracles_sources(tmp_path):
    write_module(tmp_path, release("v1.38.0"), KUBERNETES_GO_MOD)
    assert {"main.go", "go.mod", "generation_136.go"} <= {p.name for p in tmp_path.iterdir()}
