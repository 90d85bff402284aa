"""ImageLocality by example: rather a node that holds the pod's images already.

Each image counts by its size times the share of nodes that hold it; the sum scores from nothing
at 23 MiB to 100 at 1000 MiB for each container and each image volume.
"""

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

MIB = 1024 * 1024


def scores(pod, *images):
    """Return the score of each of two nodes, of which the first holds these images."""
    first = make_node("n0")
    first.raw["status"]["images"] = [
        {"names": [name], "sizeBytes": size * MIB} for name, size in images
    ]
    return PluginBench(made("ImageLocality"), first, make_node("n1")).scores(pod)


def pod_with(*, containers=(), volumes=()):
    pod = make_pod("p")
    pod.raw["spec"]["containers"] = [{"name": image, "image": image} for image in containers]
    pod.raw["spec"]["volumes"] = [
        {"name": "plain", "emptyDir": {}},
        *({"name": image, "image": {"reference": image}} for image in volumes),
    ]
    return pod


def test_a_node_with_the_image_scores_by_its_size():
    # 1000 MiB on half of the nodes: (500 - 23) of (1000 - 23).
    assert scores(pod_with(containers=["app:v1"]), ("app:v1", 1000)) == [48, 0]


def test_small_images_score_nothing():
    assert scores(pod_with(containers=["app:v1"]), ("app:v1", 46)) == [0, 0]


def test_larger_ones_score_100_at_most():
    assert scores(pod_with(containers=["app:v1"]), ("app:v1", 9000)) == [100, 0]


def test_a_name_without_a_tag_means_latest():
    assert scores(pod_with(containers=["app"]), ("app:latest", 1000)) == [48, 0]
    assert scores(pod_with(containers=["app"]), ("app:v1", 1000)) == [0, 0]


def test_images_of_volumes_count_like_those_of_containers():
    assert scores(pod_with(volumes=["data"]), ("data:latest", 1000)) == [48, 0]


def test_each_image_of_a_volume_raises_the_most_there_can_be():
    pod = pod_with(containers=["app:v1"], volumes=["data", "absent"])
    # (500 + 500 - 23) of (3000 - 23).
    assert scores(pod, ("app:v1", 1000), ("data:latest", 1000)) == [32, 0]


def test_a_pod_without_images_scores_nothing():
    assert scores(pod_with(), ("data:latest", 1000)) == [0, 0]


def test_images_that_are_nowhere_score_nothing():
    assert scores(pod_with(containers=["app:v1"]), ("data:latest", 1000)) == [0, 0]
