"""YAML read so that every value knows its line.

The usual loaders give values without places and let a repeated key win silently. Here the node
tree is walked once into plain values and a table path → line, and repeated keys are errors. What
a scalar means follows what kube-scheduler's loader makes of it, not all of YAML 1.1: dates and
`1:30` stay strings, `1e3` is a number.

Files are small and written by operators, yet a broken one must never take the process along:
size, depth and the number of values are bounded, so that neither anchors nor a wrong file cost more
than a second.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from k8s_scheduler.api.config.field_errors import FieldError, FieldPath

_MAXIMUM_DEPTH: Final = 64
# Every default spelled out is some 400 values for a profile. Each may cost 80 us, and a start
# with a wrong file reads it twice.
_MAXIMUM_VALUES: Final = 6_000
# What a ConfigMap may hold.
MAXIMUM_CHARACTERS: Final = 1 << 20
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
# What Go's loader has integers for.
_INTEGERS: Final = range(-(2**63), 2**64)
_HALF_A_CHARACTER: Final = (
    "holds half of a character: an escape from \\ud800 to \\udfff stands alone"
)
_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Document:
    """The plain value of a file, and where each part of it stands."""

    value: Any = None
    lines: Mapping[FieldPath, int] = field(default_factory=dict)

    def has(self, path: FieldPath) -> bool:
        """Return whether the file itself says something at this path, other than null."""
        value = self.value
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return False
        return value is not None

    def line_of(self, path: FieldPath) -> int | None:
        """Return the line of the path or, if it is not there, of what would hold it."""
        for end in range(len(path), -1, -1):
            if (line := self.lines.get(path[:end])) is not None:
                return line
        return None


def parse_yaml(text: str) -> tuple[list[Document], list[FieldError]]:
    if text.lstrip().startswith("{"):
        # JSON may be indented with tabs, YAML may not; JSON strings hold no raw tabs.
        text = text.replace("\t", " ")
    if len(text) > MAXIMUM_CHARACTERS:
        reason = f"is longer than {MAXIMUM_CHARACTERS} characters; is this the right file?"
        return [], [FieldError((), reason)]
    errors: list[FieldError] = []
    documents: list[Document] = []
    try:
        for node in yaml.compose_all(text, Loader=_BoundedLoader):
            walk = _Walk(errors)
            documents.append(Document(walk.value(node, ()), walk.lines))
    except RecursionError:
        return [], [_too_deep(None).reason]
    except _Unusable as error:
        return [], [error.reason]
    except yaml.YAMLError as error:
        return [], [_syntax_error(error)]
    return documents, errors


def _syntax_error(error: yaml.YAMLError) -> FieldError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    if "'\\t'" in problem:
        problem = "a tab where YAML allows only spaces; indent with spaces"
    line = mark.line + 1 if mark is not None else None
    return FieldError((), f"is not valid YAML: {problem}", line=line)


class _Unusable(Exception):  # noqa: N818  leaves the walk, never this module
    def __init__(self, reason: FieldError) -> None:
        super().__init__(reason.message)
        self.reason = reason


def _too_deep(line: int | None) -> _Unusable:
    reason = f"is nested more than {_MAXIMUM_DEPTH} levels deep"
    return _Unusable(FieldError((), reason, line=line))


def _too_many_values(line: int) -> _Unusable:
    reason = f"holds more than {_MAXIMUM_VALUES} values; too many aliases?"
    return _Unusable(FieldError((), reason, line=line))


class _BoundedLoader(yaml.SafeLoader):
    """Gives up on a file that has too much in it, before all of it is taken apart."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._composed = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        # Keys are nodes too: what they have for an index is None.
        self._composed += parent is None or index is not None
        if self._composed > _MAXIMUM_VALUES:
            raise _too_many_values(self.line + 1)
        if self._depth > _MAXIMUM_DEPTH:
            raise _too_deep(self.line + 1)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Walk:
    """Turns one document's nodes into plain values, noting lines and repeated keys."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.lines: dict[FieldPath, int] = {}
        self._errors = errors
        self._values = 0

    def value(self, node: yaml.Node, path: FieldPath) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self._values += 1
        if self._values > _MAXIMUM_VALUES:
            raise _too_many_values(line)
        if len(path) > _MAXIMUM_DEPTH:
            raise _too_deep(line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._scalar(node, path) if isinstance(node, yaml.ScalarNode) else None

    def _mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                self._merge(value_node, path, merged)
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                error = FieldError(path, "a field name must be plain text", line=line)
                self._errors.append(error)
                continue
            key = self._text(key_node, path)
            child = (*path, key)
            if key in result:
                first = self.lines[child]
                message = f'duplicate field "{key}", first given on line {first}'
                self._errors.append(FieldError(child, message, line=line))
                continue
            self.lines[child] = line
            result[key] = self.value(value_node, child)
        return {**merged, **result}

    def _merge(self, node: yaml.Node, path: FieldPath, into: dict[str, Any]) -> None:
        """Take over the fields of `<<: *anchor`; the first of several anchors wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            value = self.value(source, path)
            if not isinstance(value, dict):
                line = source.start_mark.line + 1
                self._errors.append(FieldError(path, "<< needs a mapping", line=line))
                continue
            for key, item in value.items():
                into.setdefault(key, item)

    def _text(self, node: yaml.ScalarNode, path: FieldPath) -> str:
        """Return a scalar's text, which can be written again.

        JSON has two escapes for one character beyond the first 65,536; nothing can write one alone.
        """
        text = str(node.value)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            line = node.start_mark.line + 1
            self._errors.append(FieldError(path, _HALF_A_CHARACTER, line=line))
            return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def _scalar(self, node: yaml.ScalarNode, path: FieldPath) -> Any:
        text = self._text(node, path)
        tag = node.tag.removeprefix(_TAG)
        if tag == "timestamp" or (":" in text and tag in ("int", "float")):
            tag = "str"
        if tag == "str" and node.style is None and _EXPONENT.fullmatch(text):
            tag = "float"
        if tag not in _SCALARS:
            self._errors.append(FieldError(path, f"the tag {node.tag} is not supported"))
            return None
        return _SCALARS[tag](text)


def _integer(text: str) -> int | float | str:
    """Return the number, or the text itself where only the resolver took it for one (`0x_`).

    As for Go, one that needs more than 64 bits is a real number, or a text if that does not hold it
    either. Integers without end would break code that computes with them or prints them.
    """
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    base = 8 if len(digits) > 1 and digits.startswith("0") else 10
    try:
        number = sign * int(digits, 0 if digits[1:2] in ("x", "b") else base)
    except ValueError:
        return _finite(text)
    return number if number in _INTEGERS else _finite(text)


def _real(text: str) -> float | str:
    plain = text.replace("_", "").lower()
    try:
        return float(plain.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text


def _finite(text: str) -> float | str:
    number = _real(text)
    return number if isinstance(number, float) and math.isfinite(number) else text


def _boolean(text: str) -> bool | str:
    return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(
        text.lower(), text
    )


_SCALARS: Final[Mapping[str, Callable[[str], Any]]] = {
    "null": lambda _: None,
    "bool": _boolean,
    "int": _integer,
    "float": _real,
    "str": str,
    "value": str,  # a lone "="
}
