"""ImageLocality, as far as images of volumes go."""

from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import Same
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.image_locality import ImageLocality
from k8s_scheduler.core.state.cache import Cache
from tests.builders import make_node, make_pod

MIB = 1024 * 1024


def scores(pod, *images):
    """Return the score of each of two nodes, of which the first holds these images."""
    plugin, cache = ImageLocality(), Cache()
    first = make_node("n0")
    first.raw["status"]["images"] = [
        {"names": [name], "sizeBytes": size * MIB} for name, size in images
    ]
    cache.put_node(first.obj())
    cache.put_node(make_node("n1").obj())
    rows = RowsView(
        cache,
        cache.nodes.present_rows(),
        plugin=plugin.name,
        declared=Declarations(plugin.depends_on),
        verdicts=VerdictTable(),
    )
    term = plugin.pre_score(PodView(pod.obj()), rows)
    if isinstance(term, Same):
        return [term.score] * len(rows)
    return plugin.score(term, rows).tolist()


def pod_with(*, containers=(), volumes=()):
    pod = make_pod("p")
    pod.raw["spec"]["containers"] = [{"name": image, "image": image} for image in containers]
    pod.raw["spec"]["volumes"] = [
        {"name": "plain", "emptyDir": {}},
        *({"name": image, "image": {"reference": image}} for image in volumes),
    ]
    return pod


def test_images_of_volumes_count_like_those_of_containers():
    # 1000 MiB on half of the nodes: (500 - 23) of (1000 - 23).
    assert scores(pod_with(volumes=["data"]), ("data:latest", 1000)) == [48, 0]


def test_each_image_of_a_volume_raises_the_most_there_can_be():
    pod = pod_with(containers=["app:v1"], volumes=["data", "absent"])
    # (500 + 500 - 23) of (3000 - 23).
    assert scores(pod, ("app:v1", 1000), ("data:latest", 1000)) == [32, 0]


def test_a_pod_without_images_scores_nothing():
    assert scores(pod_with(), ("data:latest", 1000)) == [0, 0]


def test_images_that_are_nowhere_score_nothing():
    assert scores(pod_with(containers=["app:v1"]), ("data:latest", 1000)) == [0, 0]
