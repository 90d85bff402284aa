"""The schema fits what the loader takes: good files pass, wrong ones fail where types can tell."""

import json

import pytest
import yaml
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from k8s_scheduler.api.config.schema import configuration_schema
from tests.unit.api.config.config_cases import EXTRAS, FEW, HEADER, KNOWN, default_documents
from tests.unit.api.config.test_extenders import FULL
from tests.unit.api.config.test_load_any_input import FILES, errors_of
from tests.unit.api.config.test_load_examples import EXAMPLES
from tests.unit.api.config.test_validate_all import TABLE

SCHEMA = configuration_schema(KNOWN)
VALIDATOR = Draft202012Validator(SCHEMA)

# What a schema can see: types, unknown fields, ranges, words and names.
SEEN = [
    "number for a string",
    "plugin that does not exist",
    "plugin at a point it lacks",
    "plugin behind a gate",
    "plugin without name",
    "typo in disabled",
    "unknown field deep inside",
    "duration in days",
    "percentage over 100",
    "parallelism of zero",
    "no first backoff",
    "args of a plugin that does not exist",
    "args of another kind",
    "args of a plugin that takes none",
    "unknown argument",
    "strategy that does not exist",
    "crooked shape",
    "spread by a way that does not exist",
    "spread with values out of range",
    "affinity weight out of range",
    "affinity with a misspelt argument",
    "volumes with a negative timeout",
    "preemption with a fraction",
    "devices with a number for a time",
    "devices with a time nobody understands",
    "an extender with an unknown field",
    "an extender with a number for a timeout",
    "an extender that is text",
]


def problems(text):
    return [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(text))]


def test_it_is_a_schema_of_its_draft():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("known", [KNOWN, FEW], ids=["all plugins", "few plugins"])
def test_the_defaults_fit(known):
    validator = Draft202012Validator(configuration_schema(known))
    for document in default_documents(known):
        assert list(validator.iter_errors(document)) == []


def test_extras_are_told_by_their_kind():
    assert problems(EXTRAS + "batch: {maxPods: 3}\n") == []
    assert problems(EXTRAS + "batch: {maxMilliseconds: 0}\n") == ["0 is less than the minimum of 1"]
    assert problems(EXTRAS + "parallelism: 3\n")
    assert problems(HEADER + "batch: {maxPods: 3}\n")


@pytest.mark.parametrize("name", ["my-custom-scheduler.yaml", "kubeconfig.yaml"])
def test_examples_fit(name):
    assert problems((EXAMPLES / name).read_text()) == []


def test_plugins_that_are_not_there_do_not_fit():
    found = problems((EXAMPLES / "custom-plugins.yaml").read_text())
    assert len(found) == 2
    assert found[0].startswith("'MyCustomPluginA' is not one of ['TaintToleration'")


def test_extenders_and_nothing_at_all_fit():
    assert problems(FULL) == []
    assert problems(HEADER) == []
    nothing = "parallelism: null\nleaderElection: null\nprofiles: [null]\nextenders: null\n"
    assert problems(HEADER + nothing) == []


@pytest.mark.parametrize("name", SEEN)
def test_wrong_files_do_not_fit(name):
    text, _ = TABLE[name]
    assert problems(text)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(FILES)
def test_what_loads_fits(value):
    text = json.dumps(value)
    assert errors_of(text) or not list(VALIDATOR.iter_errors(json.loads(text)))


def test_every_field_of_the_file_is_described():
    described = SCHEMA["$defs"]["KubeSchedulerConfiguration"]["properties"]
    assert set(described) == set(default_documents()[0])
    assert described["parallelism"] == {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": 2**31 - 1,
        "default": 16,
    }
    election = SCHEMA["$defs"]["LeaderElection"]
    assert election["properties"]["leaseDuration"]["default"] == "15s"
    assert election["description"] == "How replicas agree on the one that schedules."
