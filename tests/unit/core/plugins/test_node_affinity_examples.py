"""NodeAffinity by example: selector and required affinity pick nodes, preferences score them."""

import pytest

from k8s_scheduler.core.framework.status import StatusError
from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

NOT_SELECTED = ("node(s) didn't match Pod's node affinity/selector", False)
NOT_ENFORCED = ("node(s) didn't match scheduler-enforced node affinity", False)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def bench(**args):
    """Return two nodes with fast disks, one of them with many cores, and one with slow disks."""
    return PluginBench(
        made("NodeAffinity", **args),
        make_node("small").label(disk="ssd", cores="8"),
        make_node("big").label(disk="ssd", cores="64"),
        make_node("slow").label(disk="hdd"),
    )


def demand(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def requiring(*terms):
    """Return a pod for nodes that match all expressions of any one term."""
    written = [{"matchExpressions": term} for term in terms]
    return with_affinity({REQUIRED: {"nodeSelectorTerms": written}})


def naming(*terms):
    """Return a pod that names its nodes: in each term one of these."""
    written = [{"matchFields": [demand("metadata.name", "In", *names)]} for names in terms]
    return with_affinity({REQUIRED: {"nodeSelectorTerms": written}})


def preferring(*wishes):
    written = [{"weight": w, "preference": {"matchExpressions": [d]}} for w, d in wishes]
    return with_affinity({PREFERRED: written})


def with_affinity(affinity):
    pod = make_pod("p")
    pod.raw["spec"]["affinity"] = {"nodeAffinity": affinity}
    return pod


class TestFilter:
    """Node selector and required affinity have to hold both."""

    def test_a_pod_without_demands_may_go_anywhere(self):
        assert bench().skips(make_pod("p"))

    def test_a_node_selector_picks_by_all_its_labels(self):
        pod = make_pod("p")
        pod.raw["spec"]["nodeSelector"] = {"disk": "ssd", "cores": "64"}
        assert bench().rejections(pod) == [NOT_SELECTED, None, NOT_SELECTED]

    @pytest.mark.parametrize(
        ("expression", "picked"),
        [
            (demand("disk", "In", "ssd", "nvme"), ["small", "big"]),
            (demand("disk", "NotIn", "ssd"), ["slow"]),
            (demand("cores", "Exists"), ["small", "big"]),
            (demand("cores", "DoesNotExist"), ["slow"]),
            (demand("cores", "Gt", "8"), ["big"]),
            (demand("cores", "Lt", "64"), ["small"]),
        ],
        ids=lambda value: value["operator"] if isinstance(value, dict) else "",
    )
    def test_an_expression_has_an_operator(self, expression, picked):
        found = bench().rejections(requiring([expression]))
        names = ["small", "big", "slow"]
        assert found == [None if name in picked else NOT_SELECTED for name in names]

    def test_expressions_of_a_term_must_all_hold_and_of_terms_one(self):
        big = [demand("disk", "In", "ssd"), demand("cores", "In", "64")]
        slow = [demand("disk", "In", "hdd")]
        assert bench().rejections(requiring(big, slow)) == [NOT_SELECTED, None, None]

    def test_a_pod_that_names_its_nodes_narrows_the_search_to_them(self):
        assert bench().narrowed(naming(["big", "small"])) == ("big", "small")
        assert bench().rejections(naming(["big"])) == [NOT_SELECTED, None, NOT_SELECTED]

    def test_names_that_exclude_each_other_leave_no_node(self):
        fields = [demand("metadata.name", "In", name) for name in ("small", "big")]
        pod = with_affinity({REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}})
        assert bench().refusal(pod) == "pod affinity terms conflict"

    def test_the_profile_can_demand_labels_of_every_pod(self):
        terms = [{"matchExpressions": [demand("disk", "In", "ssd")]}]
        added = bench(addedAffinity={REQUIRED: {"nodeSelectorTerms": terms}})
        assert added.rejections(make_pod("p")) == [None, None, NOT_ENFORCED]


class TestScore:
    """The weights of the preferences that a node meets add up; the best node gets 100."""

    def test_without_preferences_there_is_no_score(self):
        assert bench().scores(make_pod("p")) is None

    def test_weights_add_up_and_are_scaled_to_the_best_node(self):
        pod = preferring((30, demand("disk", "In", "ssd")), (10, demand("cores", "In", "64")))
        assert bench().raw_scores(pod) == [30, 40, 0]
        assert bench().scores(pod) == [75, 100, 0]

    def test_preferences_that_no_node_meets_score_nothing(self):
        assert bench().scores(preferring((30, demand("disk", "In", "tape")))) == [0, 0, 0]

    def test_the_profile_can_prefer_nodes_for_every_pod(self):
        term = {"weight": 5, "preference": {"matchExpressions": [demand("cores", "Exists")]}}
        assert bench(addedAffinity={PREFERRED: [term]}).scores(make_pod("p")) == [100, 100, 0]

    def test_a_preference_that_cannot_be_read_fails_the_attempt(self):
        with pytest.raises(StatusError, match="Gt needs exactly one value, a whole number"):
            bench().scores(preferring((1, demand("cores", "Gt", "many"))))
