"""Whatever a file holds, loading ends in a configuration or a ConfigurationError, never else."""

import json
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_scheduler.api import config
from k8s_scheduler.api.config_load import load_configuration
from k8s_scheduler.api.config_plugin_args import (
    NodeResourcesFitArgs,
    ScoringStrategy,
    validate_node_resources_fit,
)
from k8s_scheduler.api.field_errors import ConfigurationError
from tests.unit.api.config_cases import KNOWN

TYPES = [
    kind
    for kind in vars(config).values()
    if isinstance(kind, type) and issubclass(kind, config.Configured)
]
FIELDS = sorted(
    {
        field.encode_name
        for kind in (*TYPES, NodeResourcesFitArgs, ScoringStrategy)
        for field in msgspec.structs.fields(kind)
    }
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "*", "a", "15s", "-1s", "NodeName", "NodeNam", "EBSLimits"])
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)
# Mappings in the shape of the file, filled with anything: gets past the first checks.
PLUGIN_SET = st.fixed_dictionaries({}, optional={"enabled": VALUES, "disabled": VALUES})
PROFILE = st.fixed_dictionaries(
    {},
    optional={
        "schedulerName": SCALARS,
        "plugins": VALUES | st.dictionaries(st.sampled_from(FIELDS), PLUGIN_SET, max_size=3),
        "pluginConfig": VALUES
        | st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(sorted(KNOWN)), "args": VALUES}),
            max_size=3,
        ),
    },
)
FILES = st.fixed_dictionaries(
    {"apiVersion": st.just(config.API_VERSION), "kind": st.just(config.KIND)},
    optional={field: VALUES for field in FIELDS if field not in ("apiVersion", "kind")}
    | {"profiles": st.lists(PROFILE, max_size=3) | VALUES},
)


def errors_of(text):
    """Load the text and return its errors, none if it is good."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            load_configuration(path, KNOWN)
        except ConfigurationError as error:
            return error.errors
    return ()


def check(text):
    """Check that what is said about the text is usable: a message each, in the order of lines."""
    errors = errors_of(text)
    assert all(error.message for error in errors)
    lines = [error.line or 0 for error in errors]
    assert lines == sorted(lines)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(FILES)
def test_any_value_in_any_field(value):
    check(json.dumps(value))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.text(st.sampled_from("a:-[]{}&*!|>'\"%@`#,? \n\t0x_~<="), max_size=40))
def test_any_text(text):
    check(f"apiVersion: {config.API_VERSION}\nkind: {config.KIND}\n{text}")
    check(text)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
def test_any_arguments(args):
    for error in validate_node_resources_fit(args, ("args",)):
        assert error.path[0] == "args"
