"""What is counted of a pod, and what of placed pods and nodes counts past a limit."""

from pathlib import Path

import msgspec
import pytest

from k8s_scheduler.api.config.limits import NODE_LIMITS, POD_LIMITS, NodeLimits, PodLimits
from k8s_scheduler.api.config.summary import summary
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_counts import excess_text, pod_counts, pod_excess
from k8s_scheduler.api.within_limits import TOO_MANY_TAINTS, node_within, placed_within
from tests.unit.api.config.config_cases import EXTRAS, HEADER, load_text, messages_of

PAGE = (Path(__file__).parents[4] / "docs" / "configuration.md").read_text()
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMES = [field.name for field in POD_LIMITS]


def selector(*values):
    return {"matchExpressions": [{"key": "k", "operator": "In", "values": list(values)}]}


def term(*values, **more):
    return {"topologyKey": "zone", "labelSelector": selector(*values), **more}


def terms(count, start=0):
    return [term(f"v{i}") for i in range(start, start + count)]


def wishes(count, start=0):
    return [{"weight": 1, "podAffinityTerm": each} for each in terms(count, start)]


def pod(**spec):
    labels = spec.pop("labels", None)
    metadata = {"name": "p", "namespace": "n", "uid": "u", "labels": labels}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def affine(**kinds):
    return pod(affinity=kinds)


# One for each field, with its count; `spec_bytes` is apart.
COUNTED = {
    "affinity_terms": (
        affine(
            podAffinity={REQUIRED: terms(1), PREFERRED: wishes(2)},
            podAntiAffinity={REQUIRED: terms(3), PREFERRED: wishes(4)},
        ),
        10,
    ),
    "topology_spread_constraints": (
        pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": f"k{i}"} for i in range(3)]),
        3,
    ),
    "selector_expressions": (
        affine(
            podAffinity={
                REQUIRED: [
                    term(
                        "a",
                        namespaceSelector={"matchLabels": {"x": "y"}},
                    )
                ]
            }
        ),
        2,
    ),
    "selector_values": (
        pod(
            affinity={"podAntiAffinity": {REQUIRED: [term("a", "b", namespaces=["c"])]}},
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": "z", "labelSelector": selector("d", "e")}
            ],
        ),
        5,
    ),
    "node_selector_terms": (
        affine(
            nodeAffinity={
                REQUIRED: {"nodeSelectorTerms": [{}, {}]},
                PREFERRED: [{"weight": 1, "preference": {}}],
            }
        ),
        3,
    ),
    "node_selector_expressions": (
        pod(
            nodeSelector={"a": "b"},
            affinity={
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {**selector("x"), "matchFields": [{"key": "f", "operator": "In"}]}
                        ]
                    }
                }
            },
        ),
        3,
    ),
    "node_selector_values": (
        affine(nodeAffinity={REQUIRED: {"nodeSelectorTerms": [selector(*map(str, range(7)))]}}),
        7,
    ),
    "resources": (
        pod(
            containers=[{"resources": {"requests": {"cpu": "1", "a": "1"}}}],
            initContainers=[{"resources": {"requests": {"cpu": "1", "b": "1"}}}],
            overhead={"c": "1"},
            resources={"requests": {"d": "1"}},
        ),
        5,
    ),
    "host_ports": (
        pod(containers=[{"ports": [{"hostPort": 1}, {"hostPort": 2}, {}]}, {}]),
        2,
    ),
    "tolerations": (pod(tolerations=[{}, {}]), 2),
    # Only those that scheduling looks at.
    "volumes": (
        pod(
            volumes=[
                {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "b", "awsElasticBlockStore": {"volumeID": "v"}},
                {"name": "token", "projected": {}},
            ]
        ),
        2,
    ),
    "claims": (
        pod(
            volumes=[{"persistentVolumeClaim": {"claimName": "a"}}, {"ephemeral": {}}, {}],
            resourceClaims=[{"name": "d"}],
        ),
        3,
    ),
    "containers": (pod(containers=[{}, {}], initContainers=[{}]), 3),
    "labels": (pod(labels={"a": "b", "c": "d"}), 2),
}


class TestCounting:
    """Every limit has its count."""

    def test_every_field_but_the_bytes_is_tried_below(self):
        assert [*COUNTED, "spec_bytes"] == NAMES

    @pytest.mark.parametrize("name", COUNTED)
    def test_a_field_counts_what_it_says(self, name):
        counted, count = COUNTED[name]
        assert pod_counts(counted)[NAMES.index(name)] == count
        within = msgspec.structs.replace(PodLimits(), **{name: count})
        assert pod_excess(counted, within) == ()
        (found,) = pod_excess(counted, msgspec.structs.replace(within, **{name: count - 1}))
        assert (found.limit.split(".")[1], found.count, found.allowed) == (
            msgspec.structs.fields(PodLimits)[NAMES.index(name)].encode_name,
            count,
            count - 1,
        )

    def test_bytes_grow_with_every_text_that_scheduling_reads(self):
        small = pod(containers=[{"image": "a"}], labels={"a": "b"})
        large = pod(containers=[{"image": "a" * 5000}], labels={"a": "b" * 5000})
        assert pod_counts(large)[-1] - pod_counts(small)[-1] >= 2 * 4999

    def test_an_ordinary_pod_is_far_from_every_limit(self):
        ordinary = COUNTED["affinity_terms"][0]
        allowed = msgspec.structs.astuple(PodLimits())
        assert all(20 * c < a for c, a in zip(pod_counts(ordinary), allowed, strict=True))

    def test_the_text_names_every_limit_its_count_and_the_field_to_raise(self):
        limits = PodLimits(affinity_terms=9, labels=1)
        many = msgspec.structs.replace(
            COUNTED["affinity_terms"][0], metadata=COUNTED["labels"][0].metadata
        )
        assert excess_text(pod_excess(many, limits)) == (
            "pod has 10 pod affinity and anti-affinity terms, more than the limit of 9 "
            "(podLimits.affinityTerms); 2 labels, more than the limit of 1 (podLimits.labels); "
            "it is not tried until it asks for less or the scheduler's configuration allows more"
        )


class TestPlacedPods:
    """Of their terms those within the limits count, everything else counts fully."""

    FULL = affine(
        podAffinity={REQUIRED: terms(2), PREFERRED: wishes(2)},
        podAntiAffinity={REQUIRED: terms(2, 10), PREFERRED: wishes(2, 10)},
    )

    def counted(self, **limits):
        kept, _ = placed_within(self.FULL, msgspec.structs.replace(PodLimits(), **limits))
        near, far = kept.spec.affinity.pod_affinity, kept.spec.affinity.pod_anti_affinity
        return [len(one or ()) for one in (far.required, near.required, far.preferred)] + [
            len(near.preferred or ())
        ]

    def test_one_within_is_the_very_same_object(self):
        assert placed_within(self.FULL, PodLimits()) == (self.FULL, ())
        assert placed_within(self.FULL, PodLimits())[0] is self.FULL

    @pytest.mark.parametrize(
        ("limit", "counted"),
        [
            (7, [2, 2, 2, 1]),
            (5, [2, 2, 1, 0]),
            (3, [2, 1, 0, 0]),
            (1, [1, 0, 0, 0]),
        ],
    )
    def test_required_anti_affinity_counts_first_and_preferred_affinity_last(self, limit, counted):
        assert self.counted(affinity_terms=limit) == counted

    @pytest.mark.parametrize("limit", ["selector_expressions", "selector_values"])
    def test_terms_count_as_long_as_their_selectors_are_within(self, limit):
        assert self.counted(**{limit: 3}) == [2, 1, 0, 0]

    def test_a_term_after_one_that_is_too_large_does_not_count(self):
        large = affine(podAntiAffinity={REQUIRED: [term("a"), term(*"bcdef"), term("g")]})
        kept, found = placed_within(large, PodLimits(selector_values=3))
        assert len(kept.spec.affinity.pod_anti_affinity.required) == 1
        assert "".join(map(str, found)) == (
            "7 values and namespaces in label selectors, more than the limit of 3 "
            "(podLimits.selectorValues)"
        )

    @pytest.mark.parametrize("name", sorted(set(COUNTED) - {"affinity_terms"}))
    def test_nothing_else_is_ever_left_out(self, name):
        counted, count = COUNTED[name]
        if not name.startswith("selector"):
            limits = msgspec.structs.replace(PodLimits(), **{name: count - 1})
            assert placed_within(counted, limits)[0] is counted


def node(taints=(), **offered):
    raw = {
        "metadata": {"name": "n"},
        "spec": {"taints": [{"key": k, "effect": e} for k, e in taints]},
        "status": {"allocatable": offered},
    }
    return msgspec.convert(raw, Node)


class TestNodes:
    """What is left out is not offered, and not to be tolerated by chance."""

    def test_one_within_is_the_very_same_object(self):
        full = node([("a", "NoSchedule")], cpu="1")
        assert node_within(full, NodeLimits(resources=1, taints=1)) == (full, ())

    def test_resources_that_most_pods_need_count_first_then_by_name(self):
        many = node(b="1", a="1", pods="9", memory="1", cpu="1")
        kept, (found,) = node_within(many, NodeLimits(resources=4))
        assert list(kept.status.allocatable) == ["cpu", "memory", "pods", "a"]
        assert str(found) == (
            "5 allocatable resources, more than the limit of 4 (nodeLimits.resources)"
        )

    def test_a_taint_that_hardly_any_pod_tolerates_stands_for_those_left_out(self):
        many = node([("soft", "PreferNoSchedule"), ("a", "NoSchedule"), ("b", "NoExecute")])
        kept, (found,) = node_within(many, NodeLimits(taints=2))
        assert [taint.key for taint in kept.spec.taints] == ["a", TOO_MANY_TAINTS.key]
        assert (found.limit, found.count) == ("nodeLimits.taints", 3)


class TestConfiguration:
    """The list of limits is the only one."""

    @pytest.mark.parametrize("field", [*POD_LIMITS, *NODE_LIMITS], ids=lambda f: f.limit)
    def test_the_page_has_every_limit_with_what_is_counted_and_its_default(self, field):
        assert f"| `{field.limit}` | {field.what} | {field.default} |" in PAGE

    def test_a_limit_out_of_range_is_refused_by_its_path(self, tmp_path):
        text = f"{EXTRAS}podLimits: {{affinityTerms: 0}}\nnodeLimits: {{taints: 3000000}}\n"
        rule = "must be between 1 and 2000000"
        assert messages_of(tmp_path, f"{HEADER}---\n{text}") == [
            f"config.yaml:6: podLimits.affinityTerms: Invalid value: 0: {rule}",
            f"config.yaml:7: nodeLimits.taints: Invalid value: 3000000: {rule}",
        ]

    def test_a_limit_that_is_set_is_in_force_and_part_of_the_summary(self, tmp_path):
        text = f"{HEADER}---\n{EXTRAS}podLimits: {{affinityTerms: 7}}\n"
        loaded = load_text(tmp_path, text)
        assert loaded.extras.pod_limits == PodLimits(affinity_terms=7)
        line = "podLimits.affinityTerms: 7 pod affinity and anti-affinity terms, instead of 256"
        assert line in summary(loaded)
