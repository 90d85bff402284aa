from pathlib import Path

import pytest

from testbed.binaries import COMPONENTS, find_tools
from testbed.build import BuildDir
from testbed.errors import TestbedError

VERSIONS = {
    "etcd": "etcd Version: 3.7.0",
    "kwok": "kwok version v0.8.0 go1.26.8 (linux/amd64)",
    "kube-apiserver": "Kubernetes v1.37.1",
}


class Builder:
    """Records what it is asked to build."""

    def __init__(self) -> None:
        self.asked: list[set[str]] = []

    def __call__(self, products) -> BuildDir:
        self.asked.append(set(products))
        return BuildDir(path=Path("/cache"))


@pytest.fixture
def builder() -> Builder:
    return Builder()


@pytest.fixture
def ready(tmp_path, program):
    """Put a ready-made program into a folder; return the folder."""

    def make(component: str, answer: str | None = None, folder: str = "assets") -> Path:
        text = VERSIONS[component] if answer is None else answer
        return program(tmp_path / folder / component, f"#!/bin/sh\necho '{text}'\n").parent

    return make


def test_nothing_ready_made_means_everything_is_built(builder):
    tools = find_tools(COMPONENTS, environ={}, build=builder)
    assert builder.asked == [{"controlplane", "kwok", "stages.yaml"}]
    assert tools.binaries["etcd"].path == Path("/cache/bin/etcd")
    assert tools.binaries["kube-scheduler"].version == "v1.37.1"
    assert tools.stages == Path("/cache/stages.yaml")


def test_assets_go_before_path_and_each_component_is_looked_for_on_its_own(ready, builder):
    assets = ready("etcd")
    path = ready("etcd", folder="path")
    ready("kube-apiserver", folder="path")
    environ = {"KUBEBUILDER_ASSETS": str(assets), "PATH": str(path)}
    said: list[str] = []
    tools = find_tools(
        ["etcd", "kube-apiserver", "kube-controller-manager"],
        environ=environ,
        build=builder,
        say=said.append,
    )
    origins = {name: binary.origin for name, binary in tools.binaries.items()}
    assert origins == {
        "etcd": "KUBEBUILDER_ASSETS",
        "kube-apiserver": "PATH",
        "kube-controller-manager": "build cache",
    }
    assert builder.asked == [{"controlplane"}]
    assert said == []


def test_all_ready_made_means_nothing_is_built(ready, builder):
    ready("kube-apiserver")
    environ = {"KUBEBUILDER_ASSETS": str(ready("etcd"))}
    tools = find_tools(["etcd", "kube-apiserver"], environ=environ, build=builder)
    assert builder.asked == []
    assert tools.stages is None


def test_ready_made_kwok_still_gets_our_stages(ready, builder):
    environ = {"KUBEBUILDER_ASSETS": str(ready("kwok"))}
    tools = find_tools(["kwok"], environ=environ, build=builder)
    assert builder.asked == [{"stages.yaml"}]
    assert tools.stages == Path("/cache/stages.yaml")


@pytest.mark.parametrize(
    ("answer", "shown"), [("Kubernetes v1.30.2", "v1.30.2"), ("no idea", "unknown")]
)
def test_another_version_is_used_and_said_in_one_line(ready, builder, answer, shown):
    environ = {"KUBEBUILDER_ASSETS": str(ready("kube-apiserver", answer))}
    said: list[str] = []
    tools = find_tools(["kube-apiserver"], environ=environ, build=builder, say=said.append)
    assert tools.binaries["kube-apiserver"].version == shown
    (line,) = said
    assert f"is {shown}, not v1.37.1" in line
    assert "\n" not in line


def test_ready_made_programs_can_be_turned_off(ready, builder):
    environ = {"PATH": str(ready("etcd")), "K8S_SCHEDULER_READY_BINARIES": "0"}
    tools = find_tools(["etcd"], environ=environ, build=builder)
    assert tools.binaries["etcd"].origin == "build cache"


def test_unknown_component_is_refused_with_the_names_there_are(builder):
    with pytest.raises(TestbedError, match=r"no such component: kubelet; there are etcd, "):
        find_tools(["kubelet"], environ={}, build=builder)
