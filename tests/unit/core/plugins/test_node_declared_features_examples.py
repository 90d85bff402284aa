"""NodeDeclaredFeatures by example: a pod goes only where the kubelet can do what it needs."""

import pytest

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

MISSING = ("node(s) didn't match Pod's required features", False)
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
RESTART_ALL = "RestartAllContainersOnContainerExits"
BIND_OPTIONS = "VolumeBindMountOptions"


def needing(*features):
    """Return a pod whose spec asks for what these features are about."""
    pod = make_pod("p").request(cpu="1")
    spec = pod.raw["spec"]
    if USER_NAMESPACES in features:
        spec.update(hostNetwork=True, hostUsers=False)
    if RESTART_ALL in features:
        spec["containers"][0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    if BIND_OPTIONS in features:
        spec["containers"][0]["volumeMounts"] = [{"bindMountOptions": ["noexec"]}]
    return pod


def bench(*declared):
    """Return nodes that declare these features in their status."""
    nodes = [make_node(f"n{number}") for number in range(len(declared))]
    for node, features in zip(nodes, declared, strict=True):
        node.raw["status"]["declaredFeatures"] = features
    return PluginBench(made("NodeDeclaredFeatures"), *nodes)


def test_a_pod_that_needs_nothing_is_skipped():
    assert bench([], [RESTART_ALL]).skips(needing())


@pytest.mark.parametrize("feature", [USER_NAMESPACES, RESTART_ALL, BIND_OPTIONS])
def test_rejects_nodes_that_do_not_declare_what_the_pod_needs(feature):
    nodes = bench([], ["Other"], [feature], ["Other", feature], None)
    assert nodes.rejections(needing(feature)) == [MISSING, MISSING, None, None, MISSING]


def test_every_feature_has_to_be_there():
    both = needing(USER_NAMESPACES, RESTART_ALL)
    nodes = bench([USER_NAMESPACES], [RESTART_ALL], [RESTART_ALL, USER_NAMESPACES])
    assert nodes.rejections(both) == [MISSING, MISSING, None]
