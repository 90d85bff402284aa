"""Random pods and nodes that often nearly fit each other."""

from hypothesis import strategies as st

from tests.builders import make_node, make_pod

cpu = st.sampled_from(["0", "100m", "0.5m", "250m", "1", "1500m", "2", "3"])
memory = st.sampled_from(["0", "1Mi", "200Mi", "1Gi", "1G", "2Gi", "1.5Gi"])
gpu = st.sampled_from(["0", "1", "2"])
taint_key = st.sampled_from(["k1", "k2"])
effect = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])


label_value = st.sampled_from(["a", "b", "4", "16"])
label_key = st.sampled_from(["zone", "size"])


@st.composite
def expressions(draw):
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    values = {
        "In": st.lists(label_value, min_size=1, max_size=2),
        "NotIn": st.lists(label_value, min_size=1, max_size=2),
        "Gt": st.sampled_from([["3"], ["10"], ["-1"]]),
        "Lt": st.sampled_from([["5"], ["16"]]),
    }.get(operator, st.just([]))
    return {"key": draw(label_key), "operator": operator, "values": draw(values)}


terms = st.fixed_dictionaries({"matchExpressions": st.lists(expressions(), max_size=2)})


def draw_images_and_ports(draw, pod):
    for container in pod.raw["spec"]["containers"]:
        container["image"] = draw(st.sampled_from(["i1", "i2:v1", "host:80/i3"]))
        if draw(st.integers(0, 3)) == 0:
            container["ports"] = [
                {
                    "hostPort": draw(st.sampled_from([80, 81])),
                    "hostIP": draw(st.sampled_from(["", "127.0.0.1", "10.0.0.1"])),
                    "protocol": draw(st.sampled_from(["TCP", "UDP"])),
                }
            ]


def draw_node_affinity(draw, pod):
    affinity = {}
    if draw(st.integers(0, 3)) == 0:
        required = {"nodeSelectorTerms": draw(st.lists(terms, min_size=1, max_size=2))}
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if draw(st.integers(0, 2)) == 0:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw(st.integers(1, 100)), "preference": draw(terms)}
            for _ in range(draw(st.integers(1, 2)))
        ]
    if affinity:
        pod.raw["spec"]["affinity"] = {"nodeAffinity": affinity}
    if draw(st.integers(0, 4)) == 0:
        pod.raw["spec"]["nodeSelector"] = {draw(label_key): draw(label_value)}


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
    draw_images_and_ports(draw, pod)
    draw_node_affinity(draw, pod)
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
    for key in ("zone", "size"):
        if draw(st.booleans()):
            node.label(**{key: draw(label_value)})
    node.raw["status"]["images"] = [
        {"names": [name], "sizeBytes": draw(st.sampled_from([10**6, 3 * 10**8, 2 * 10**9]))}
        for name in ("i1:latest", "i2:v1", "host:80/i3:latest")
        if draw(st.booleans())
    ]
    return node
