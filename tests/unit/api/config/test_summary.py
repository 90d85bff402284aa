"""The summary says what was understood."""

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.summary import summary
from tests.unit.api.config.config_cases import EXTRAS, FEW, HEADER, KNOWN, load_text
from tests.unit.api.config.test_extenders import FULL


def test_the_defaults():
    lines = summary(default_configuration(KNOWN)).splitlines()
    assert lines[0] == (
        "leader election: lease kube-system/kube-scheduler, 15s long, renewed within 10s, tried "
        "every 2s"
    )
    assert lines[1:9] == [
        "API server: credentials of the pod, no limit",
        "backoff of pods: 1s to 10s",
        "calls at once: 16",
        "decisions in a row: 16, for 10ms at most",
        "reasons renewed without an attempt: 20 pods per second at most",
        "",
        "profile default-scheduler",
        "  nodes to score: all",
    ]
    assert "  bind: DefaultBinder" in lines
    assert "  reserve: VolumeBinding, DynamicResources" in lines
    assert (
        "  score: TaintToleration*3, NodeAffinity*2, NodeResourcesFit*1, VolumeBinding*1, "
        "PodTopologySpread*2, InterPodAffinity*2, DynamicResources*2, "
        "NodeResourcesBalancedAllocation*1, ImageLocality*1"
    ) in lines
    assert '  PodTopologySpread: defaultingType "System"' in lines
    assert not any("left out" in line for line in lines)


def test_settings_and_profiles_of_a_file(tmp_path):
    text = (
        "leaderElection: {leaderElect: false}\n"
        "clientConnection: {kubeconfig: /k, qps: 20, burst: 30}\n"
        "podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 60\nparallelism: 4\n"
        "delayCacheUntilActive: true\npercentageOfNodesToScore: 30\n"
        "profiles:\n- schedulerName: a\n- {schedulerName: b, percentageOfNodesToScore: 100}\n"
    )
    lines = summary(load_text(tmp_path, HEADER + text)).splitlines()
    assert lines[:5] == [
        "leader election: none",
        "API server: /k, 20/s, burst 30",
        "backoff of pods: 2s to 60s",
        "calls at once: 4",
        "caches: filled only while leading",
    ]
    assert [line for line in lines if line.startswith(("profile", "  nodes"))] == [
        "profile a",
        "  nodes to score: 30%",
        "profile b",
        "  nodes to score: all",
    ]


def test_what_is_done_about_rivals_if_it_is_not_the_usual(tmp_path):
    for given, shown in (
        ("{action: Refuse, namespaces: [a, b]}", "rivals: Refuse, looked for in a, b"),
        ("{namespaces: [a]}", "rivals: Warn, looked for in a"),
        ("{action: Ignore}", "rivals: Ignore, not looked for"),
    ):
        loaded = load_text(tmp_path, f"{HEADER}---\n{EXTRAS}rivals: {given}\n")
        assert shown in summary(loaded).splitlines()
    assert "rivals" not in summary(default_configuration(KNOWN))


def test_an_extenders_password_is_not_shown(tmp_path):
    text = "extenders: [{urlPrefix: 'https://user:hunter22@ext/a@b', ignorable: true}]\n"
    assert "extender https://<redacted>@ext/a@b: nothing, ignorable" in summary(
        load_text(tmp_path, HEADER + text)
    )


def test_extenders_and_what_is_missing(tmp_path):
    lines = summary(load_text(tmp_path, FULL)).splitlines()
    assert (
        "extender https://extender.example:8888/scheduler: filter, prioritize, preempt, bind, "
        "ignorable"
    ) in lines
    assert "extender http://127.0.0.1:1: nothing, ignorable" in lines
    few = summary(default_configuration(FEW)).splitlines()
    assert few[-1].startswith("  not supported yet, left out: NodeAffinity, NodePorts")
