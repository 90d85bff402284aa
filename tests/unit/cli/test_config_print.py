"""`config defaults` and `config schema` print what the loader itself goes by."""

import json

from click.testing import CliRunner
from jsonschema import Draft202012Validator

from k8s_scheduler.api.config.defaults_file import defaults_file
from k8s_scheduler.api.config.schema import configuration_schema
from k8s_scheduler.app.configuration.interpretation import known_plugins
from k8s_scheduler.cli.main import main


def output_of(*arguments):
    result = CliRunner().invoke(main, ["config", *arguments])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_defaults_are_a_file_that_passes_the_check(tmp_path):
    text = output_of("defaults")
    assert text == defaults_file(known_plugins())
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert output_of("check", str(path)).endswith("\nOK\n")


def test_schema_is_one_and_knows_the_plugins_that_exist():
    schema = json.loads(output_of("schema"))
    Draft202012Validator.check_schema(schema)
    assert schema == configuration_schema(known_plugins())
    names = schema["$defs"]["PluginConfig"]["properties"]["name"]["enum"]
    assert names == [name for name, facts in known_plugins().items() if facts.supported]
