"""InterPodAffinity by example: near some pods, away from others, in zones or on nodes."""

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

TOO_FAR = ("node(s) didn't match pod affinity rules", False)
TOO_NEAR = ("node(s) didn't match pod anti-affinity rules", True)
REFUSED = ("node(s) didn't satisfy existing pods anti-affinity rules", True)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NEAR, AWAY = "podAffinity", "podAntiAffinity"


def bench(*pods, **args):
    """Return nodes a1 and a2 of zone a and b1 of zone b, with these pods."""
    nodes = (make_node(name).label(zone=name[0], host=name) for name in ("a1", "a2", "b1"))
    return PluginBench(made("InterPodAffinity", **args), *nodes).place(*pods)


def term(app="web", key="zone"):
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def demanding(side, wanted, *, name="p", **labels):
    pod = make_pod(name).label(**labels)
    pod.raw["spec"]["affinity"] = {side: {REQUIRED: [wanted]}}
    return pod


def preferring(side, wanted, weight, *, name="p"):
    pod = make_pod(name)
    wish = {"weight": weight, "podAffinityTerm": wanted}
    pod.raw["spec"]["affinity"] = {side: {PREFERRED: [wish]}}
    return pod


WEB = make_pod("web").label(app="web").on("a1")


class TestAffinity:
    """A pod with required affinity goes into a domain of a pod that matches."""

    def test_the_zone_of_such_a_pod_takes_it(self):
        assert bench(WEB).rejections(demanding(NEAR, term())) == [None, None, TOO_FAR]

    def test_over_hosts_only_its_node_does(self):
        wanted = demanding(NEAR, term(key="host"))
        assert bench(WEB).rejections(wanted) == [None, TOO_FAR, TOO_FAR]

    def test_without_such_a_pod_no_node_does_and_preemption_does_not_help(self):
        assert bench().rejections(demanding(NEAR, term())) == [TOO_FAR] * 3

    def test_the_first_pod_of_a_group_that_matches_itself_may_go_anywhere(self):
        assert bench().rejections(demanding(NEAR, term(), app="web")) == [None] * 3


class TestAntiAffinity:
    """It holds both ways: the newcomer's terms, and those of pods that are there."""

    def test_the_zone_of_a_pod_that_matches_is_rejected(self):
        assert bench(WEB).rejections(demanding(AWAY, term())) == [TOO_NEAR, TOO_NEAR, None]

    def test_a_pod_that_is_there_keeps_others_away(self):
        loner = demanding(AWAY, term(), name="loner").on("a1")
        newcomer = make_pod("p").label(app="web")
        assert bench(loner).rejections(newcomer) == [REFUSED, REFUSED, None]

    def test_a_pod_that_nothing_is_said_of_may_go_anywhere(self):
        loner = demanding(AWAY, term("db"), name="loner").on("a1")
        assert bench(loner).skips(make_pod("p").label(app="web"))


class TestScore:
    """Weights of all that speaks for a domain, minus what speaks against it, scaled to 0..100."""

    def test_preferred_company_attracts(self):
        pod = preferring(NEAR, term(), 10)
        assert bench(WEB).raw_scores(pod) == [10, 10, 0]
        assert bench(WEB).scores(pod) == [100, 100, 0]

    def test_company_that_is_not_wanted_repels(self):
        pod = preferring(AWAY, term(), 10)
        assert bench(WEB).raw_scores(pod) == [-10, -10, 0]
        assert bench(WEB).scores(pod) == [0, 0, 100]

    def test_preferences_of_pods_that_are_there_count_too(self):
        host = preferring(NEAR, term(), 7, name="host").on("b1")
        assert bench(host).raw_scores(make_pod("p").label(app="web")) == [0, 0, 7]

    def test_required_affinity_of_pods_that_are_there_counts_with_a_weight_of_its_own(self):
        host = demanding(NEAR, term(), name="host").on("b1")
        newcomer = make_pod("p").label(app="web")
        assert bench(host, hardPodAffinityWeight=1).raw_scores(newcomer) == [0, 0, 1]
        assert bench(host, hardPodAffinityWeight=20).raw_scores(newcomer) == [0, 0, 20]

    def test_without_preferences_there_is_no_score(self):
        assert bench(WEB).scores(make_pod("p")) is None
