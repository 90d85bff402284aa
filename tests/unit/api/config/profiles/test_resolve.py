"""Profiles resolve as kube-scheduler resolves them: merge, expand, weigh."""

import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.profiles.points import EXTENSION_POINTS
from k8s_scheduler.api.config.profiles.resolve import expand, merge
from k8s_scheduler.api.config.types import PluginEntry, PluginFacts, PluginSet, PluginUse
from tests.unit.api.config.config_cases import (
    DEFAULT_MULTI_POINT,
    FEW,
    HEADER,
    KNOWN,
    load_text,
    supporting,
)

# Everything upstream has, as if it were built: resolving must not depend on what exists yet.
ALL = supporting(KNOWN)


def resolve(folder, plugins, *, known=ALL):
    """Resolve a single profile from the YAML of its `plugins`."""
    indented = "".join(f"    {line}\n" for line in plugins.splitlines())
    text = HEADER + "profiles:\n- plugins:\n" + indented
    return load_text(folder, text, known=known).profiles[0]


def names(profile, point):
    return [use.name for use in profile.points[point]]


def weights(profile):
    return {use.name: use.weight for use in profile.points["score"]}


class TestDefaultSet:
    """The default profile is kube-scheduler 1.37's."""

    def test_every_point_lists_the_plugins_that_implement_it_in_default_order(self):
        profile = default_configuration(ALL).profiles[0]
        assert set(profile.points) == set(EXTENSION_POINTS)
        for point in EXTENSION_POINTS:
            expected = [name for name in DEFAULT_MULTI_POINT if point in ALL[name].points]
            assert names(profile, point) == expected

    def test_weights_are_the_default_ones_and_one_for_the_rest(self):
        assert weights(default_configuration(ALL).profiles[0]) == {
            "TaintToleration": 3,
            "NodeAffinity": 2,
            "NodeResourcesFit": 1,
            "VolumeBinding": 1,
            "PodTopologySpread": 2,
            "InterPodAffinity": 2,
            "DynamicResources": 2,
            "NodeResourcesBalancedAllocation": 1,
            "ImageLocality": 1,
        }

    def test_points_without_scores_carry_no_weight(self):
        profile = default_configuration(ALL).profiles[0]
        assert {use.weight for use in profile.points["filter"]} == {0}

    def test_plugins_not_built_yet_are_left_out_and_named(self):
        profile = default_configuration(FEW).profiles[0]
        assert names(profile, "filter") == [
            "NodeName",
            "NodeUnschedulable",
            "TaintToleration",
            "NodeResourcesFit",
        ]
        assert profile.points["queueSort"] == (PluginUse("PrioritySort"),)
        assert profile.left_out == tuple(
            name for name in DEFAULT_MULTI_POINT if not FEW[name].supported
        )

    def test_a_missing_sorter_or_binder_is_left_out_without_an_error(self):
        none = supporting(())
        profile = default_configuration(none).profiles[0]
        assert profile.points["queueSort"] == profile.points["bind"] == ()

    def test_all_names_are_known_and_all_defaults_are_among_them(self):
        assert len(ALL) == 24
        assert tuple(n for n, facts in ALL.items() if facts.by_default) == DEFAULT_MULTI_POINT
        for facts in ALL.values():
            assert facts.points <= set(EXTENSION_POINTS)


class TestMerge:
    """The user's multiPoint on top of the default one."""

    DEFAULTS = (PluginEntry("A", 3), PluginEntry("B"), PluginEntry("C", 2))

    @pytest.mark.parametrize(
        ("custom", "merged"),
        [
            (PluginSet(), ["A3", "B", "C2"]),
            (PluginSet(enabled=(PluginEntry("D"),)), ["A3", "B", "C2", "D"]),
            (PluginSet(enabled=(PluginEntry("A", 9), PluginEntry("D"))), ["A9", "B", "C2", "D"]),
            (PluginSet(enabled=(PluginEntry("A"),)), ["A", "B", "C2"]),
            (PluginSet(disabled=(PluginEntry("B"),)), ["A3", "C2"]),
            (PluginSet(disabled=(PluginEntry("*"),)), []),
            (PluginSet((PluginEntry("A", 5),), (PluginEntry("A"),)), ["B", "C2", "A5"]),
            (PluginSet((PluginEntry("C"), PluginEntry("A")), (PluginEntry("*"),)), ["C", "A"]),
            (PluginSet((PluginEntry("A", 1), PluginEntry("A", 2))), ["A2", "B", "C2", "A1"]),
        ],
        ids=[
            "nothing said",
            "a new plugin goes last",
            "a default is replaced in place",
            "a default without weight loses its own",
            "disabled leaves",
            "star clears",
            "disabled and enabled moves to the end",
            "star and enabled sets a new order",
            "a repeated name stays, to be found out",
        ],
    )
    def test_merges(self, custom, merged):
        result = merge(self.DEFAULTS, custom)
        assert [f"{p.name}{p.weight or ''}" for p in result] == merged


class TestExpand:
    """multiPoint and a point's own set, lined up."""

    FACTS = {name: PluginFacts(points=frozenset({"filter"})) for name in "ABCD"} | {
        "S": PluginFacts(points=frozenset({"score"}))
    }
    MULTI = tuple(PluginEntry(name) for name in "ABSC")

    @pytest.mark.parametrize(
        ("at_point", "order"),
        [
            (PluginSet(), "ABC"),
            (PluginSet(enabled=(PluginEntry("D"),)), "ABCD"),
            (PluginSet(enabled=(PluginEntry("D"), PluginEntry("C"), PluginEntry("A"))), "CABD"),
            (PluginSet(disabled=(PluginEntry("B"),)), "AC"),
            (PluginSet((PluginEntry("B"),), (PluginEntry("B"),)), "ACB"),
            (PluginSet((PluginEntry("D"), PluginEntry("A")), (PluginEntry("*"),)), "DA"),
        ],
        ids=[
            "only those that implement the point",
            "others named at the point come last",
            "those that override come first, in the point's order",
            "disabled at the point leaves",
            "disabled and enabled at the point comes last",
            "star leaves what the point names",
        ],
    )
    def test_order(self, at_point, order):
        assert "".join(expand("filter", at_point, self.MULTI, known=self.FACTS).names) == order

    def test_a_name_that_multi_point_brings_twice_is_noticed(self):
        twice = (*self.MULTI, PluginEntry("A"))
        assert expand("filter", PluginSet(), twice, known=self.FACTS).repeated == ("A",)
        named = PluginSet(enabled=(PluginEntry("A"),))
        assert expand("filter", named, twice, known=self.FACTS).repeated == ()


class TestFromTheFile:
    """The same through a whole file."""

    def test_weight_at_the_point_wins(self, tmp_path):
        profile = resolve(
            tmp_path,
            "multiPoint:\n  enabled:\n  - {name: TaintToleration, weight: 7}\n"
            "score:\n  enabled:\n  - {name: TaintToleration, weight: 9}\n",
        )
        assert weights(profile)["TaintToleration"] == 9
        assert names(profile, "score")[0] == "TaintToleration"

    def test_weight_in_multi_point_replaces_the_default(self, tmp_path):
        text = "multiPoint:\n  enabled:\n  - {name: TaintToleration, weight: 7}\n"
        profile = resolve(tmp_path, text)
        assert weights(profile)["TaintToleration"] == 7
        assert names(profile, "filter") == names(default_configuration(ALL).profiles[0], "filter")

    def test_naming_a_plugin_without_weight_makes_it_one(self, tmp_path):
        profile = resolve(tmp_path, "score:\n  enabled:\n  - name: TaintToleration\n")
        assert weights(profile)["TaintToleration"] == 1

    def test_disabled_at_one_point_stays_at_the_others(self, tmp_path):
        profile = resolve(tmp_path, "score:\n  disabled:\n  - name: NodeResourcesFit\n")
        assert "NodeResourcesFit" not in names(profile, "score")
        assert "NodeResourcesFit" in names(profile, "filter")

    @pytest.mark.parametrize("point", ["preFilter", "filter", "preScore", "score"])
    def test_each_half_of_a_pair_can_be_disabled_alone(self, tmp_path, point):
        profile = resolve(tmp_path, f"{point}:\n  disabled:\n  - name: NodeAffinity\n")
        still = {p for p in profile.points if "NodeAffinity" in names(profile, p)}
        assert still == {"preFilter", "filter", "preScore", "score"} - {point}
        assert "NodeAffinity" in profile.plugin_args

    def test_a_point_can_keep_one_plugin_alone(self, tmp_path):
        profile = resolve(
            tmp_path, "filter:\n  disabled: [{name: '*'}]\n  enabled: [{name: NodePorts}]\n"
        )
        assert names(profile, "filter") == ["NodePorts"]
        assert len(names(profile, "preFilter")) > 5

    def test_what_others_need_does_not_need_them(self, tmp_path):
        text = "filter:\n  disabled:\n  - name: NodePorts\n  - name: VolumeRestrictions\n"
        profile = resolve(tmp_path, text)
        assert "NodePorts" in names(profile, "preFilter")
        assert "NodePorts" not in names(profile, "filter")

    def test_only_what_is_named_remains_after_star(self, tmp_path):
        profile = resolve(
            tmp_path,
            "multiPoint:\n  disabled: [{name: '*'}]\n"
            "  enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]\n",
            known=KNOWN,
        )
        assert {point for point, uses in profile.points.items() if uses} == {
            "queueSort",
            "bind",
            "preFilter",
            "filter",
        }
        assert profile.left_out == ()

    def test_disabling_what_is_not_built_yet_is_fine(self, tmp_path):
        text = "multiPoint:\n  disabled: [{name: DefaultPreemption}]\n"
        left_out = resolve(tmp_path, text, known=FEW).left_out
        assert "DefaultPreemption" not in left_out
        assert "VolumeBinding" in left_out


class TestArguments:
    """pluginConfig arrives at its plugin, checked and without its type."""

    def load(self, folder, config):
        indented = "".join(f"  {line}\n" for line in config.splitlines())
        return load_text(folder, HEADER + "profiles:\n- pluginConfig:\n" + indented)

    def test_arguments_are_handed_on_with_defaults_filled_in(self, tmp_path):
        text = (
            "- name: NodeResourcesFit\n  args:\n"
            "    apiVersion: kubescheduler.config.k8s.io/v1\n    kind: NodeResourcesFitArgs\n"
            "    ignoredResources: [example.com/foo]\n"
            "    scoringStrategy:\n      type: MostAllocated\n"
            "      resources: [{name: cpu, weight: 3}, {name: memory}]\n"
        )
        configuration = self.load(tmp_path, text)
        assert configuration.profiles[0].plugin_args["NodeResourcesFit"] == {
            "ignoredResources": ["example.com/foo"],
            "ignoredResourceGroups": [],
            "scoringStrategy": {
                "type": "MostAllocated",
                "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
            },
        }
        assert configuration.warnings == ()

    def test_every_plugin_that_takes_arguments_has_the_default_ones(self):
        assert default_configuration(KNOWN).profiles[0].plugin_args == {
            "DefaultPreemption": {
                "minCandidateNodesPercentage": 10,
                "minCandidateNodesAbsolute": 100,
            },
            "DynamicResources": {"filterTimeout": "10s", "bindingTimeout": "10m0s"},
            "InterPodAffinity": {
                "hardPodAffinityWeight": 1,
                "ignorePreferredTermsOfExistingPods": False,
            },
            "NodeAffinity": {},
            "NodeResourcesBalancedAllocation": {
                "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
            },
            "NodeResourcesFit": {
                "ignoredResources": [],
                "ignoredResourceGroups": [],
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                },
            },
            "PodTopologySpread": {"defaultConstraints": [], "defaultingType": "System"},
            "VolumeBinding": {
                "bindTimeoutSeconds": 600,
                "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
            },
        }

    def test_what_is_given_replaces_only_its_own_default(self, tmp_path):
        text = (
            "- {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [\n"
            "    {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule,\n"
            "     minDomains: 3, nodeTaintsPolicy: Honor, matchLabelKeys: [app]}]}}\n"
            "- {name: VolumeBinding, args: {bindTimeoutSeconds: 0, shape: []}}\n"
            "- {name: DefaultPreemption, args: {minCandidateNodesPercentage: 0}}\n"
            "- {name: DynamicResources, args: {filterTimeout: 0s, bindingTimeout: 1s}}\n"
            "- {name: InterPodAffinity, args: {ignorePreferredTermsOfExistingPods: true}}\n"
        )
        args = self.load(tmp_path, text).profiles[0].plugin_args
        assert args["PodTopologySpread"] == {
            "defaultingType": "List",
            "defaultConstraints": [
                {
                    "maxSkew": 2,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "minDomains": 3,
                    "nodeTaintsPolicy": "Honor",
                    "matchLabelKeys": ["app"],
                }
            ],
        }
        assert args["VolumeBinding"]["bindTimeoutSeconds"] == 0
        assert len(args["VolumeBinding"]["shape"]) == 2
        assert args["DefaultPreemption"] == {
            "minCandidateNodesPercentage": 0,
            "minCandidateNodesAbsolute": 100,
        }
        assert args["DynamicResources"] == {"filterTimeout": "0s", "bindingTimeout": "1s"}
        assert args["InterPodAffinity"] == {
            "hardPodAffinityWeight": 1,
            "ignorePreferredTermsOfExistingPods": True,
        }

    def test_arguments_of_a_disabled_plugin_are_warned_about(self, tmp_path):
        text = (
            "profiles:\n- plugins:\n    multiPoint:\n      disabled: [{name: NodeResourcesFit}]\n"
            "  pluginConfig:\n  - name: NodeResourcesFit\n"
        )
        file = tmp_path / "config.yaml"
        assert load_text(tmp_path, HEADER + text).warnings == (
            (
                f'{file}:8: profiles[0].pluginConfig[0]: plugin "NodeResourcesFit" is not '
                "enabled in this profile; no effect"
            ),
        )
        assert "NodeResourcesFit" not in load_text(tmp_path, HEADER + text).profiles[0].plugin_args


def test_weights_and_removed_names_without_effect_are_warned_about(tmp_path):
    text = (
        "profiles:\n- plugins:\n    filter:\n      enabled: [{name: NodeName, weight: 2}]\n"
        "    multiPoint:\n      enabled: [{name: NodeName, weight: 2}]\n"
        "    score:\n      disabled: [{name: TaintToleration, weight: 2}, {name: EBSLimits}]\n"
    )
    only_scores = "a weight counts only where nodes are scored; it has no effect here"
    warnings = [
        warning.partition("plugins.")[2] for warning in load_text(tmp_path, HEADER + text).warnings
    ]
    assert warnings == [
        f"filter.enabled[0].weight: {only_scores}",
        f"multiPoint.enabled[0].weight: {only_scores}",
        f"score.disabled[0].weight: {only_scores}",
        'score.disabled[1].name: plugin "EBSLimits" was removed; disabling it has no effect',
    ]
