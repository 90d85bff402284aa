"""NodeDeclaredFeatures and ImageLocality by whole columns decide what they decide node by node."""

from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP, Same
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.image_locality import ImageLocality
from k8s_scheduler.core.plugins.node_declared_features import NodeDeclaredFeatures
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading, make_node, make_pod
from tests.reference import image_locality, node_declared_features

FEATURES = [
    "Other",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
]
IMAGES = ["i1", "i2:v1", "host:80/i3"]
image = st.sampled_from(IMAGES)
size = st.sampled_from([10**6, 3 * 10**7, 3 * 10**8, 2 * 10**9])


@st.composite
def nodes(draw):
    found = []
    for i in range(draw(st.integers(1, 5))):
        node = make_node(f"n{i}")
        status = node.raw["status"]
        status["declaredFeatures"] = draw(st.one_of(st.none(), st.lists(st.sampled_from(FEATURES))))
        held = draw(st.sets(st.sampled_from(["i1:latest", "i2:v1", "host:80/i3:latest"])))
        status["images"] = [{"names": [name], "sizeBytes": draw(size)} for name in sorted(held)]
        found.append(node.obj())
    return found


@st.composite
def containers(draw, name):
    container = {"name": name, "image": draw(image)}
    if draw(st.booleans()):
        action = draw(st.sampled_from(["Restart", "RestartAllContainers"]))
        container["restartPolicyRules"] = [{"action": action}]
    if draw(st.booleans()):
        options = draw(st.sampled_from([None, [], ["noexec"]]))
        container["volumeMounts"] = [{"bindMountOptions": options}]
    return container


@st.composite
def pods(draw):
    pod = make_pod("p")
    spec = pod.raw["spec"]
    for part in ("containers", "initContainers"):
        count = draw(st.integers(0, 2))
        spec[part] = [draw(containers(f"{part}{i}")) for i in range(count)]
    spec["volumes"] = [
        {"name": name, "image": {"reference": name}} for name in draw(st.lists(image, max_size=2))
    ]
    spec["hostNetwork"] = draw(st.booleans())
    spec["hostUsers"] = draw(st.sampled_from([None, True, False]))
    return pod.obj()


def view(plugin, found):
    cache = Cache()
    for node in found:
        cache.put_node(node)
    return RowsView(
        cache,
        cache.nodes.present_rows(),
        reader=Reading(plugin.name, Declarations(plugin.depends_on)),
        verdicts=VerdictTable(),
    )


@given(found=nodes(), pod=pods())
def test_features_equal_the_scalar_reference(found, pod):
    plugin = NodeDeclaredFeatures()
    rows = view(plugin, found)
    term = plugin.prepare(PodView(pod), rows)
    assert (term is SKIP) == (not node_declared_features.needed(pod))
    if term is not SKIP:
        rejected = [bool(code) for code in plugin.filter(term, rows).tolist()]
        assert rejected == [node_declared_features.rejects(pod, node) for node in found]


@given(found=nodes(), pod=pods())
def test_images_equal_the_scalar_reference(found, pod):
    plugin = ImageLocality()
    rows = view(plugin, found)
    term = plugin.pre_score(PodView(pod), rows)
    same = isinstance(term, Same)
    scores = [term.score] * len(found) if same else plugin.score(term, rows).tolist()
    assert scores == [image_locality.score(pod, node, found) for node in found]
