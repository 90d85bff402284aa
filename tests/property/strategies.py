"""Random pods and nodes that often nearly fit each other."""

from hypothesis import strategies as st

from tests.builders import make_node, make_pod

cpu = st.sampled_from(["0", "100m", "0.5m", "250m", "1", "1500m", "2", "3"])
memory = st.sampled_from(["0", "1Mi", "200Mi", "1Gi", "1G", "2Gi", "1.5Gi"])
gpu = st.sampled_from(["0", "1", "2"])
taint_key = st.sampled_from(["k1", "k2"])
effect = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])


@st.composite
def pods(draw, name: str = "p"):
    pod = make_pod(name)
    for _ in range(draw(st.integers(0, 2))):
        amounts = {}
        if draw(st.booleans()):
            amounts["cpu"] = draw(cpu)
        if draw(st.booleans()):
            amounts["memory"] = draw(memory)
        if draw(st.integers(0, 5)) == 0:
            amounts["example.com__gpu"] = draw(gpu)
        pod.request(**amounts)
    if draw(st.integers(0, 4)) == 0:
        pod.init(restartable=draw(st.booleans()), cpu=draw(cpu))
    for _ in range(draw(st.integers(0, 2))):
        pod.tolerates(
            draw(st.sampled_from(["", "k1", "k2", "node.kubernetes.io/unschedulable"])),
            operator=draw(st.sampled_from(["", "Exists", "Equal"])),
            value=draw(st.sampled_from(["", "v"])),
            effect=draw(st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"])),
        )
    return pod


@st.composite
def nodes(draw, name: str):
    node = make_node(name).offers(
        cpu=draw(cpu), memory=draw(memory), pods=draw(st.sampled_from(["0", "1", "2", "5"]))
    )
    if draw(st.integers(0, 3)) == 0:
        node.raw["status"]["allocatable"]["example.com/gpu"] = draw(gpu)
    if draw(st.integers(0, 3)) == 0:
        node.cordoned()
    for _ in range(draw(st.integers(0, 2)) if draw(st.booleans()) else 0):
        node.taint(draw(taint_key), value=draw(st.sampled_from(["", "v"])), effect=draw(effect))
    return node
