"""The default configuration as a file says everything, and means the same as no file."""

import msgspec
import pytest

from k8s_scheduler.api.config.defaults_file import defaults_file
from k8s_scheduler.api.config.extras import SchedulerExtras
from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import KubeSchedulerConfiguration
from tests.unit.api.config.config_cases import (
    DEFAULT_MULTI_POINT,
    FEW,
    KNOWN,
    default_documents,
    load_text,
)


@pytest.mark.parametrize("known", [KNOWN, FEW], ids=["all plugins", "few plugins"])
def test_loading_it_changes_nothing(tmp_path, known):
    loaded, default = (
        load_text(tmp_path, defaults_file(known), known=known),
        default_configuration(known),
    )
    assert loaded.profiles == default.profiles
    assert loaded.extras == default.extras
    assert msgspec.structs.replace(loaded.settings, profiles=()) == msgspec.structs.replace(
        default.settings, profiles=()
    )
    assert loaded.warnings == ()


def test_every_field_is_there():
    file, extras = default_documents()
    assert list(extras) == [f.encode_name for f in msgspec.structs.fields(SchedulerExtras)]
    fields = msgspec.structs.fields(KubeSchedulerConfiguration)
    assert list(file) == [field.encode_name for field in fields]
    for section in ("leader_election", "client_connection"):
        field = next(field for field in fields if field.name == section)
        assert list(file[field.encode_name]) == [
            inner.encode_name for inner in msgspec.structs.fields(field.type)
        ]


def test_plugins_are_listed_as_kube_scheduler_lists_them():
    (profile,) = default_documents()[0]["profiles"]
    enabled = profile["plugins"].pop("multiPoint")["enabled"]
    assert [plugin["name"] for plugin in enabled] == list(DEFAULT_MULTI_POINT)
    assert {plugin["name"]: plugin["weight"] for plugin in enabled if "weight" in plugin} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert set(map(str, profile["plugins"].values())) == {"{}"}


def test_arguments_are_listed_with_their_type():
    (profile,) = default_documents()[0]["profiles"]
    args = {config["name"]: config["args"] for config in profile["pluginConfig"]}
    assert list(args) == sorted(default_configuration(KNOWN).profiles[0].plugin_args)
    assert args["VolumeBinding"] == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "VolumeBindingArgs",
        "bindTimeoutSeconds": 600,
        "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
    }


def test_what_does_not_exist_is_not_listed():
    text = defaults_file(FEW)
    assert "InterPodAffinity" not in text
    assert "NodeResourcesFit" in text
