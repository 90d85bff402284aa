"""NodeDeclaredFeatures, rule by rule."""

import pytest

from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.node_declared_features import NodeDeclaredFeatures
from k8s_scheduler.core.state.cache import Cache
from tests.builders import make_node, make_pod

USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
RESTART_ALL = "RestartAllContainersOnContainerExits"
BIND_OPTIONS = "VolumeBindMountOptions"


def needing(*features):
    pod = make_pod("p").request(cpu="1")
    spec = pod.raw["spec"]
    if USER_NAMESPACES in features:
        spec.update(hostNetwork=True, hostUsers=False)
    if RESTART_ALL in features:
        spec["containers"][0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    if BIND_OPTIONS in features:
        spec["containers"][0]["volumeMounts"] = [{"bindMountOptions": ["noexec"]}]
    return PodView(pod.obj())


def judge(pod, *declared):
    plugin, cache, verdicts = NodeDeclaredFeatures(), Cache(), VerdictTable()
    for i, features in enumerate(declared):
        node = make_node(f"n{i}")
        node.raw["status"]["declaredFeatures"] = features
        cache.put_node(node.obj())
    rows = RowsView(
        cache,
        cache.nodes.present_rows(),
        plugin=plugin.name,
        declared=Declarations(plugin.depends_on),
        verdicts=verdicts,
    )
    term = plugin.prepare(pod, rows)
    if term is SKIP:
        return SKIP
    return [verdicts[code] if code else None for code in plugin.filter(term, rows).tolist()]


def test_a_pod_that_needs_nothing_is_skipped():
    assert judge(needing(), [], [RESTART_ALL]) is SKIP


@pytest.mark.parametrize("feature", [USER_NAMESPACES, RESTART_ALL, BIND_OPTIONS])
def test_rejects_nodes_that_do_not_declare_what_the_pod_needs(feature):
    declared = [[], ["Other"], [feature], ["Other", feature], None]
    found = judge(needing(feature), *declared)
    assert [verdict is None for verdict in found] == [False, False, True, True, False]
    assert found[0].reasons[0].text == "node(s) didn't match Pod's required features"
    assert not found[0].resolvable


def test_every_feature_has_to_be_there():
    found = judge(needing(USER_NAMESPACES, RESTART_ALL), [USER_NAMESPACES], [RESTART_ALL])
    assert None not in found
    assert judge(needing(USER_NAMESPACES, RESTART_ALL), [RESTART_ALL, USER_NAMESPACES]) == [None]
