"""docs/configuration.md names everything there is."""

from pathlib import Path

import msgspec
import pytest

from k8s_scheduler.api.config import extras
from k8s_scheduler.api.config import types as config
from k8s_scheduler.api.config.profiles.points import EXTENSION_POINTS
from tests.unit.api.config.config_cases import ARGUMENTS, KNOWN, messages_of

PAGE = (Path(__file__).parents[4] / "docs" / "configuration.md").read_text()
SECTIONS = (
    config.KubeSchedulerConfiguration,
    config.LeaderElection,
    config.ClientConnection,
    config.KubeSchedulerProfile,
    config.ExtenderSettings,
    config.ExtenderTLSConfig,
    extras.SchedulerExtras,
    extras.BatchSettings,
    extras.PreemptionSettings,
    extras.NodeOwnershipSettings,
)


def part(heading):
    """Return the text of a section of the page."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_every_field_is_explained(kind):
    fields = [field.encode_name for field in msgspec.structs.fields(kind)]
    # Three ways to give a certificate are told by one.
    told = {"keyFile", "caFile", "keyData", "caData"}
    assert [field for field in fields if field not in PAGE and field not in told] == []


@pytest.mark.parametrize(("name", "kind"), ARGUMENTS.items(), ids=ARGUMENTS)
def test_every_argument_is_explained(name, kind):
    rows = part("Arguments").split(f"\n| {name} |")[1]
    for field in msgspec.structs.fields(kind):
        assert f"`{field.encode_name}" in rows


def test_every_point_and_every_plugin_that_is_missing_is_named():
    assert all(f"`{point}`" in part("Profiles") for point in EXTENSION_POINTS)
    missing = [name for name, facts in KNOWN.items() if not facts.supported]
    differences = part("Differences from kube-scheduler")
    assert [name for name in missing if name not in differences] == []


def test_what_needs_another_point_is_listed():
    needy = [name for name, facts in KNOWN.items() if facts.needs]
    assert [name for name in needy if name not in part("Profiles")] == []


def test_the_wrong_file_shown_gives_the_messages_shown(tmp_path):
    file = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      filter:
        enabled: [{name: NodeNam}]
    pluginConfig:
      - name: InterPodAffinity
        args: {hardPodAffinityWeight: 101}
"""
    shown = part("Wrong files").split("```console\n")[1].split("\n2 errors")[0].splitlines()[1:]
    assert messages_of(tmp_path, file) == shown
