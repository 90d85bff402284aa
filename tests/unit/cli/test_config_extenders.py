"""What `run` does with extenders, which nothing calls yet."""

import pytest

from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.app.configuration.interpretation import load
from k8s_scheduler.app.options import ConfigurationFlags

EXTENDER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: http://127.0.0.1:1
  filterVerb: filter
"""


def load_for_run(folder, text):
    path = folder / "config.yaml"
    path.write_text(text)
    return load(ConfigurationFlags(config_file=path))


def test_it_refuses_to_start(tmp_path):
    with pytest.raises(ConfigurationError, match="extenders are not supported yet, and pods would"):
        load_for_run(tmp_path, EXTENDER)


def test_it_starts_with_a_warning_if_all_are_ignorable(tmp_path):
    configuration = load_for_run(tmp_path, EXTENDER + "  ignorable: true\n")
    assert len(configuration.settings.extenders) == 1
    (warning,) = configuration.warnings
    assert "runs as if it could not be reached" in warning
