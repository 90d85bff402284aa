"""What is wrong with a requirement of a label selector, in kube-scheduler's words."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from k8s_scheduler.api.names import is_label_value, is_qualified_name

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_ENDS: Final = "and must start and end with an alphanumeric character"
_NAME_RULE: Final = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', {_ENDS} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'({_NAME})?')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', {_ENDS} (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_EMPTY: Final = "must be non-empty"


def requirement_problem(key: str, operator: str, values: Sequence[str]) -> str | None:
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        return f"{_quoted(operator)} is not a valid label selector operator"
    wants_values = operator in ("In", "NotIn")
    fine = bool(values) == wants_values and all(map(is_label_value, values))
    if fine and is_qualified_name(key):
        return None
    problems = [f"key: Invalid value: {_quoted(key)}: {text}" for text in _key_problem(key)]
    if wants_values and not values:
        problems.append(
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
        )
    if values and not wants_values:
        problems.append(
            f"values: Invalid value: {_quoted(list(values))}: "
            "values set must be empty for exists and does not exist"
        )
    problems += [
        f"values[{i}][{key}]: Invalid value: {_quoted(value)}: {'; '.join(_value_problems(value))}"
        for i, value in enumerate(values)
        if not is_label_value(value)
    ]
    return together(problems)


def together(problems: Sequence[str]) -> str:
    """Return several problems as one, as Go's aggregated errors read."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _key_problem(key: str) -> list[str]:
    """Return the one text on a key; nothing if it is fine."""
    if is_qualified_name(key):
        return []
    *prefix, name = key.split("/")
    if len(prefix) > 1:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_RULE} {optional}"]
    problems = [f"prefix part {text}" for part in prefix for text in _prefix_problems(part)]
    if not name:
        problems.append(f"name part {_EMPTY}")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_NAME, name):
        problems.append(f"name part {_NAME_RULE}")
    return ["; ".join(problems)]


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return [_EMPTY]
    problems = []
    if len(prefix.encode()) > 253:
        problems.append("must be no more than 253 bytes")
    if not re.fullmatch(_SUBDOMAIN, prefix):
        problems.append(_SUBDOMAIN_RULE)
    return problems


def _value_problems(value: str) -> list[str]:
    problems = []
    if len(value.encode()) > 63:
        problems.append("must be no more than 63 bytes")
    if not re.fullmatch(f"({_NAME})?", value):
        problems.append(_VALUE_RULE)
    return problems


def _quoted(value: str | list[str]) -> str:
    return msgspec.json.encode(value).decode()
