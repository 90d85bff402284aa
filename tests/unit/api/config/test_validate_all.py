"""All wrong files of the tests beside this one: many, different, and none with a traceback."""

import pytest
from click.testing import CliRunner

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.main import main
from tests.unit.api.config import (
    test_decode_types,
    test_load_bad_files,
    test_validate_args,
    test_validate_extenders,
    test_validate_plugin_args,
    test_validate_plugins,
    test_validate_values,
)
from tests.unit.api.config.config_cases import HEADER

WITH_HEADER = (
    test_validate_args,
    test_validate_extenders,
    test_validate_plugin_args,
    test_validate_plugins,
    test_decode_types,
    test_validate_values,
)
TABLE = test_load_bad_files.CASES | {
    name: (HEADER + text, messages)
    for module in WITH_HEADER
    for name, (text, messages) in module.CASES.items()
}


def test_there_are_at_least_sixty_and_no_two_alike():
    parts = (test_load_bad_files, *WITH_HEADER)
    assert len(TABLE) == sum(len(module.CASES) for module in parts)
    assert len({text for text, _ in TABLE.values()}) == len(TABLE)
    assert len({tuple(messages) for _, messages in TABLE.values()}) >= 60


@pytest.mark.parametrize(("text", "messages"), TABLE.values(), ids=TABLE.keys())
def test_the_command_ends_with_the_messages_and_nothing_else(tmp_path, text, messages):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    result = CliRunner().invoke(main, ["config", "check", str(path)])
    assert isinstance(result.exception, SystemExit | None)
    assert "Traceback" not in result.output
    if all("not supported yet" in message for message in messages):
        return  # depends on what exists; said as a warning or as an error
    assert result.exit_code == ExitCode.USAGE
    assert all(line.startswith(str(path)) for line in result.stderr.splitlines()[:-1])
