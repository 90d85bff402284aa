"""The files in manifests/examples load and mean what they say."""

from pathlib import Path

import pytest
import yaml

from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.load import default_configuration, load_configuration
from k8s_scheduler.api.config.types import PluginFacts
from tests.unit.api.config.config_cases import KNOWN, load_text

EXAMPLES = Path(__file__).parents[4] / "manifests" / "examples"
SCORING = PluginFacts(points=frozenset({"score"}))
CUSTOM = {"MyCustomPluginA": SCORING, "MyCustomPluginB": SCORING}
DEFAULT = default_configuration(KNOWN)


def load(name, known=KNOWN):
    return load_configuration(EXAMPLES / name, known)


def scores(profile):
    return [(use.name, use.weight) for use in profile.points["score"]]


class TestMyCustomScheduler:
    """A profile of its own name that packs nodes and waits a minute for volumes."""

    profile = load("my-custom-scheduler.yaml").profiles[0]
    default = DEFAULT.profiles[0]

    def test_it_is_one_profile_without_a_warning(self):
        configuration = load("my-custom-scheduler.yaml")
        assert [p.scheduler_name for p in configuration.profiles] == ["my-custom-scheduler"]
        assert configuration.warnings == ()

    def test_resources_weigh_one_and_come_first(self):
        rest = [score for score in scores(self.default) if score[0] != "NodeResourcesFit"]
        assert scores(self.profile) == [("NodeResourcesFit", 1), *rest]

    def test_all_other_points_are_the_default_ones(self):
        for point, uses in self.default.points.items():
            if point != "score":
                assert self.profile.points[point] == uses

    def test_arguments(self):
        args = self.profile.plugin_args
        assert args["NodeResourcesFit"]["scoringStrategy"] == {
            "type": "MostAllocated",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        }
        assert args["VolumeBinding"]["bindTimeoutSeconds"] == 60
        others = self.default.plugin_args.keys() - {"NodeResourcesFit", "VolumeBinding"}
        assert {name: args[name] for name in others} == {
            name: self.default.plugin_args[name] for name in others
        }


def test_the_config_map_holds_the_same_scheduler(tmp_path):
    manifest = yaml.safe_load((EXAMPLES / "my-scheduler-config.yaml").read_text())
    assert manifest["kind"] == "ConfigMap"
    assert manifest["metadata"] == {"name": "my-scheduler-config", "namespace": "kube-system"}
    (text,) = manifest["data"].values()
    assert list(manifest["data"]) == ["my-scheduler-config.yaml"]
    held, alone = load_text(tmp_path, text), load("my-custom-scheduler.yaml")
    assert (held.settings, held.profiles) == (alone.settings, alone.profiles)


def test_the_kubeconfig_is_all_that_differs_from_the_default():
    configuration = load("kubeconfig.yaml")
    path = "/etc/srv/kubernetes/kube-scheduler/kubeconfig"
    assert configuration.settings.client_connection.kubeconfig == path
    assert configuration.profiles == DEFAULT.profiles


class TestCustomPlugins:
    """A default plugin out, two others in, at one point."""

    def test_with_the_plugins_there(self):
        profile = load("custom-plugins.yaml", {**KNOWN, **CUSTOM}).profiles[0]
        kept = [s for s in scores(DEFAULT.profiles[0]) if s[0] != "PodTopologySpread"]
        assert scores(profile) == [*kept, ("MyCustomPluginA", 2), ("MyCustomPluginB", 1)]
        assert profile.scheduler_name == "default-scheduler"
        for point in ("preFilter", "filter", "preScore"):
            assert profile.points[point] == DEFAULT.profiles[0].points[point]

    def test_without_them_both_are_named(self):
        with pytest.raises(ConfigurationError) as caught:
            load("custom-plugins.yaml")
        assert [(error.line, error.message) for error in caught.value.errors] == [
            (13, 'ScorePlugin "MyCustomPluginA" does not exist'),
            (15, 'ScorePlugin "MyCustomPluginB" does not exist'),
        ]


def test_there_is_a_test_for_every_example():
    assert sorted(path.name for path in EXAMPLES.iterdir()) == [
        "custom-plugins.yaml",
        "kubeconfig.yaml",
        "my-custom-scheduler.yaml",
        "my-scheduler-config.yaml",
    ]
