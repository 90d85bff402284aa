"""What all contestants are told."""

from pathlib import Path

import pytest
import yaml

from k8s_scheduler.app.configuration.interpretation import load
from k8s_scheduler.app.options import ConfigurationFlags
from testbed.bench.contestants import BatchChoice, configuration
from testbed.bench.scenarios import BENCH_SCHEDULER


@pytest.mark.parametrize(("qps", "limits"), [(0, (0, 100)), (5000, (5000, 5000))])
def test_the_configuration_is_one_profile_with_every_default(
    tmp_path: Path, qps: int, limits: tuple[int, int]
):
    file = tmp_path / "config.yaml"
    file.write_text(configuration(Path("/somewhere/kubeconfig"), qps=qps))
    document = yaml.safe_load(file.read_text())
    assert document["profiles"] == [{"schedulerName": BENCH_SCHEDULER}]
    assert "percentageOfNodesToScore" not in document
    loaded = load(ConfigurationFlags(config_file=file))
    settings = loaded.settings
    assert settings.client_connection.kubeconfig == "/somewhere/kubeconfig"
    assert (settings.client_connection.qps, settings.client_connection.burst) == limits
    assert not settings.leader_election.leader_elect
    assert not loaded.warnings


def test_another_batch_is_a_document_of_the_configuration(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(configuration(Path("/kubeconfig"), batch=BatchChoice.parse("64/5")))
    loaded = load(ConfigurationFlags(config_file=path))
    assert (loaded.extras.batch.max_pods, loaded.extras.batch.max_milliseconds) == (64, 5)
