"""Whatever a file holds, loading ends in a configuration or a ConfigurationError, never else."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from k8s_scheduler.api.config import types as config
from k8s_scheduler.api.config.arguments import read_args
from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.load import load_configuration
from tests.unit.api.config.config_cases import ARGUMENTS, KNOWN


def fields_of(kind):
    """Return the names of all fields of a type and of what it holds."""
    names = set()
    for field in inspect.type_info(kind).fields:
        names.add(field.encode_name)
        found = [field.type]
        while found:
            inner = found.pop()
            found += getattr(inner, "types", ())
            found += [
                getattr(inner, name) for name in ("type", "item_type") if hasattr(inner, name)
            ]
            if isinstance(inner, inspect.StructType):
                names |= fields_of(inner.cls)
    return names


TYPES = (config.KubeSchedulerConfiguration, *ARGUMENTS.values())
FIELDS = sorted(set().union(*map(fields_of, TYPES)))
TOP = [field.encode_name for field in inspect.type_info(config.KubeSchedulerConfiguration).fields]
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
    optional={field: VALUES for field in (*TOP, "unknown") if field not in ("apiVersion", "kind")}
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


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.sampled_from(sorted(ARGUMENTS)),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4),
)
def test_any_arguments(name, args):
    arguments = ARGUMENTS[name]
    completed, errors = read_args(arguments, args, ("args",))
    assert all(error.path[0] == "args" for error in errors)
    if not errors:
        assert read_args(arguments, encode(completed), ("args",)) == (completed, [])


def test_the_fields_to_try_are_all_of_them():
    assert {"profiles", "certData", "defaultingType", "matchFields", "score", "weight"} <= set(
        FIELDS
    )
