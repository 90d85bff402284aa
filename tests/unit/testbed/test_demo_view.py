"""What the demo says about pods that wait."""

from testbed.demo_view import Picture, View, why_pending
from testbed.workload import make_node, make_pod


def pod(name, *, node=None, message=None, phase="Pending"):
    made = make_pod(name, node_name=node)
    made["status"] = {"phase": phase}
    if message:
        made["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "False", "message": message}
        ]
    return made


def test_reasons_lose_their_counts():
    text = "0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu."
    assert why_pending(pod("p", message=text)) == "Insufficient cpu, Too many pods"
    assert why_pending(pod("p", message="no nodes available to schedule pods")) == (
        "no nodes available to schedule pods"
    )
    assert why_pending(pod("p")) == "in the queue"


def test_a_picture_counts_what_is_bound_and_why_the_rest_is_not(capsys):
    text = "0/2 nodes are available: 2 Insufficient cpu."
    pods = [
        pod("a", node="n1", phase="Running"),
        pod("b", node="n1"),
        pod("c", message=text),
        pod("d"),
    ]
    picture = Picture.of(pods, [make_node("n1"), make_node("n2")], seconds=2.0)
    assert (picture.created, picture.bound, picture.running) == (4, 2, 1)
    assert (picture.nodes, picture.used_nodes) == (2, 1)
    view = View(total_pods=4, live=False)
    view.show(picture)
    said = capsys.readouterr().out
    assert "2/4 bound" in said
    assert "nodes 1/2 used" in said
    assert "pending 2: 1 Insufficient cpu; 1 in the queue" in said


def test_a_terminal_is_drawn_over(capsys):
    view = View(total_pods=1, live=True)
    for seconds in (1.0, 2.0):
        view.show(Picture.of([], [], seconds=seconds))
    assert "\x1b[3A" in capsys.readouterr().out
