"""Extenders are read and checked completely; none is passed over in silence."""

import pytest

from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.types import ExtenderSettings, ExtenderTLSConfig, ManagedResource
from tests.unit.api.config.config_cases import HEADER, load_text

FULL = (
    HEADER
    + """\
extenders:
- urlPrefix: https://extender.example:8888/scheduler
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: 5
  bindVerb: bind
  enableHTTPS: true
  tlsConfig:
    serverName: extender
    certData: Y2VydA==
    keyData: a2V5
    caFile: /etc/extender/ca.crt
  httpTimeout: 100ms
  nodeCacheCapable: true
  managedResources:
  - name: example.com/gpu
    ignoredByScheduler: true
  - name: example.com/fpga
  ignorable: true
- urlPrefix: http://127.0.0.1:1
  httpTimeout: 0s
  ignorable: true
"""
)
REFUSED = FULL.replace("  ignorable: true\n", "", 1)


def test_every_field_arrives(tmp_path):
    first, second = load_text(tmp_path, FULL).settings.extenders
    assert first == ExtenderSettings(
        url_prefix="https://extender.example:8888/scheduler",
        filter_verb="filter",
        preempt_verb="preempt",
        prioritize_verb="prioritize",
        weight=5,
        bind_verb="bind",
        enable_https=True,
        tls_config=ExtenderTLSConfig(
            server_name="extender",
            cert_data=b"cert",
            key_data=b"key",
            ca_file="/etc/extender/ca.crt",
        ),
        http_timeout_seconds=0.1,
        node_cache_capable=True,
        managed_resources=(
            ManagedResource("example.com/gpu", ignored_by_scheduler=True),
            ManagedResource("example.com/fpga"),
        ),
        ignorable=True,
    )
    assert second.http_timeout_seconds == 5.0


def test_ignorable_ones_are_warned_about(tmp_path):
    said = (
        "extenders are not supported yet; as it is ignorable, the scheduler runs as if it could "
        "not be reached"
    )
    assert load_text(tmp_path, FULL).warnings == (
        f"{tmp_path}/config.yaml:4: extenders[0]: {said}",
        f"{tmp_path}/config.yaml:23: extenders[1]: {said}",
    )


def test_with_any_other_nothing_runs(tmp_path):
    with pytest.raises(ConfigurationError) as caught:
        load_text(tmp_path, REFUSED)
    assert [error.path for error in caught.value.errors] == [("extenders", 0)]
    assert "extenders are not supported yet" in str(caught.value)


def test_a_check_accepts_it_and_says_so(tmp_path):
    configuration = load_text(tmp_path, REFUSED, to_run=False)
    assert len(configuration.settings.extenders) == 2
    assert configuration.warnings[0].startswith(
        f"{tmp_path}/config.yaml:4: extenders[0]: extenders are not supported yet, and pods would"
    )


def test_a_check_still_finds_what_is_wrong(tmp_path):
    with pytest.raises(ConfigurationError, match="must have a positive weight"):
        load_text(tmp_path, REFUSED.replace("weight: 5", "weight: 0"), to_run=False)


class TestResources:
    """A resource that an extender looks after is ignored by NodeResourcesFit, in every profile."""

    def test_it_takes_the_place_of_the_plugins_own_list(self, tmp_path):
        text = FULL + (
            "profiles:\n- schedulerName: a\n- schedulerName: b\n  pluginConfig:\n"
            "  - {name: NodeResourcesFit, args: {ignoredResources: [example.com/x]}}\n"
            "- schedulerName: c\n  plugins:\n    multiPoint:\n"
            "      disabled: [{name: NodeResourcesFit}]\n"
        )
        first, second, third = load_text(tmp_path, text).profiles
        for profile in (first, second):
            fit = profile.plugin_args["NodeResourcesFit"]
            assert fit["ignoredResources"] == ["example.com/gpu"]
            assert fit["scoringStrategy"]["type"] == "LeastAllocated"
        assert "NodeResourcesFit" not in third.plugin_args

    def test_without_such_a_resource_the_list_stays(self, tmp_path):
        text = FULL.replace("ignoredByScheduler: true", "ignoredByScheduler: false") + (
            "profiles:\n- pluginConfig:\n"
            "  - {name: NodeResourcesFit, args: {ignoredResources: [example.com/x]}}\n"
        )
        fit = load_text(tmp_path, text).profiles[0].plugin_args["NodeResourcesFit"]
        assert fit["ignoredResources"] == ["example.com/x"]
