"""The JSON schema of the configuration file, for editors and for checks before a rollout.

Made from what the loader itself uses: the types, the rules at their fields, and the plugins that
exist with their points and arguments. A file that loads fits the schema; one that does not fit
does not load. Rules between fields (a lease longer than its deadline, one binder) are beyond it:
`config check` knows them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import inspect

from k8s_scheduler.api.config.decode import describe_type
from k8s_scheduler.api.config.encode import encode_field
from k8s_scheduler.api.config.extras import EXTRAS_API_VERSION, EXTRAS_KIND, SchedulerExtras
from k8s_scheduler.api.config.profiles.points import MULTI_POINT, REMOVED_PLUGINS
from k8s_scheduler.api.config.rules import DURATION, FORMAT, Choice, Range, rule
from k8s_scheduler.api.config.types import (
    API_VERSION,
    KIND,
    KubeSchedulerConfiguration,
    PluginConfig,
    PluginFacts,
    Plugins,
)
from k8s_scheduler.api.durations import DURATION_PATTERN

Schema: TypeAlias = dict[str, Any]

# Taking away is allowed for every name that means something, there or elsewhere.
_DISABLED: Final = "DisabledPlugin"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def configuration_schema(known: Mapping[str, PluginFacts]) -> Schema:
    """Return the schema of the whole file, draft 2020-12."""
    definitions = _Definitions()
    definitions.add(KubeSchedulerConfiguration)
    for name, facts in known.items():
        if facts.supported and facts.arguments is not None:
            arguments = definitions.add(facts.arguments)
            arguments["properties"] |= _type_of(f"{name}Args")
    schemas = definitions.schemas
    schemas[Plugins.__name__]["properties"] = {
        point: _at_point(point, schema, known)
        for point, schema in schemas[Plugins.__name__]["properties"].items()
    }
    schemas[_DISABLED] = _named(["*", *known, *sorted(REMOVED_PLUGINS)])
    schemas[PluginConfig.__name__] |= _plugin_config(known)
    file = schemas[KubeSchedulerConfiguration.__name__]
    file["properties"] |= {"apiVersion": {"const": API_VERSION}, "kind": {"const": KIND}}
    file["required"] = ["apiVersion", "kind"]
    definitions.add(SchedulerExtras)
    extras = schemas[SchedulerExtras.__name__]
    kind = {"kind": {"const": EXTRAS_KIND}}
    extras["properties"] |= {"apiVersion": {"const": EXTRAS_API_VERSION}, **kind}
    extras["required"] = ["apiVersion", "kind"]
    return {
        "$schema": _DIALECT,
        "title": f"{KIND} {API_VERSION}, {EXTRAS_KIND} {EXTRAS_API_VERSION}",
        "type": "object",
        # Each document of the file is held against it.
        "if": {"properties": kind, "required": ["kind"]},
        "then": {"$ref": _reference(SchedulerExtras.__name__)},
        "else": {"$ref": _reference(KubeSchedulerConfiguration.__name__)},
        "$defs": dict(sorted(schemas.items())),
    }


def _reference(name: str) -> str:
    return f"#/$defs/{name}"


def _type_of(kind: str) -> Schema:
    return {"apiVersion": {"enum": [API_VERSION]}, "kind": {"enum": [kind]}}


def _supported(known: Mapping[str, PluginFacts], point: str) -> list[str]:
    return [
        name
        for name, facts in known.items()
        if facts.supported and (point == MULTI_POINT or point in facts.points)
    ]


def _at_point(point: str, plugin_set: Schema, known: Mapping[str, PluginFacts]) -> Schema:
    lists = {
        "enabled": {"items": _named(_supported(known, point))},
        "disabled": {"items": {"$ref": _reference(_DISABLED)}},
    }
    return {**plugin_set, "properties": lists}


def _named(names: Iterable[str]) -> Schema:
    return {"required": ["name"], "properties": {"name": {"enum": list(names)}}}


def _plugin_config(known: Mapping[str, PluginFacts]) -> Schema:
    names = _supported(known, MULTI_POINT)
    return _named(names) | {
        "properties": {"name": {"enum": names}, "args": {"type": ["object", "null"]}},
        "allOf": [
            {
                "if": {"properties": {"name": {"const": name}}},
                "then": {"properties": {"args": _arguments(name, known[name])}},
            }
            for name in names
        ],
    }


def _arguments(name: str, facts: PluginFacts) -> Schema:
    if facts.arguments is None:
        return {"properties": _type_of(f"{name}Args"), "additionalProperties": False}
    return {"$ref": _reference(facts.arguments.__name__)}


def _nullable(schema: Schema) -> Schema:
    """Allow null, which stands for "not given" wherever something may be left out.

    Types that are referred to allow it themselves: a choice between the two would hide from
    people which part of a file does not fit.
    """
    if "$ref" in schema:
        return schema
    words: Schema = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, **words, "type": [schema["type"], "null"]}


class _Definitions:
    """The schemas of all types met so far, by name."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._rules: Mapping[type[inspect.Type], Callable[[Any], Schema]] = {
            inspect.Metadata: self._annotated,
            inspect.UnionType: self._optional,
            inspect.StructType: lambda kind: {"$ref": self._struct(kind)},
            inspect.VarTupleType: lambda kind: {
                "type": "array",
                "items": _nullable(self.of(kind.item_type)),
            },
            inspect.DictType: lambda _: {"type": "object"},
            inspect.BoolType: lambda _: {"type": "boolean"},
            inspect.StrType: lambda _: {"type": "string"},
            inspect.IntType: _integer,
            inspect.FloatType: lambda _: {"type": "number"},
            inspect.BytesType: lambda _: {"type": "string", "contentEncoding": "base64"},
        }

    def add(self, kind: type[msgspec.Struct]) -> Schema:
        self.of(describe_type(kind))
        return self.schemas[kind.__name__]

    def of(self, kind: inspect.Type) -> Schema:
        return self._rules[type(kind)](kind)

    def _annotated(self, kind: inspect.Metadata) -> Schema:
        if (kind.extra or {}).get(FORMAT) == DURATION:
            return {"type": "string", "pattern": DURATION_PATTERN}
        schema = self.of(kind.type)
        match rule(kind.extra):
            case Range(minimum, maximum):
                schema["minimum"] = minimum
                if maximum is not None:
                    schema["maximum"] = maximum
            case Choice(values):
                schema["enum"] = [*values, ""]
        return schema

    def _optional(self, kind: inspect.UnionType) -> Schema:
        (something,) = (t for t in kind.types if not isinstance(t, inspect.NoneType))
        return self.of(something)

    def _struct(self, kind: inspect.StructType) -> str:
        name = kind.cls.__name__
        if name not in self.schemas:
            schema: Schema = {
                "description": re.sub(r"\s+", " ", kind.cls.__doc__ or "").strip(),
                "type": ["object", "null"],
                "additionalProperties": False,
            }
            self.schemas[name] = schema
            schema["properties"] = {field.encode_name: self._field(field) for field in kind.fields}
        return _reference(name)

    def _field(self, field: inspect.Field) -> Schema:
        schema = _nullable(self.of(field.type))
        default = encode_field(field.type, field.default)
        # Nothing, and a number that is no answer either, are not worth showing.
        is_shown = isinstance(default, (bool, str, int, float)) and default != ""
        if is_shown and default >= schema.get("minimum", default):
            schema["default"] = default
        return schema


def _integer(kind: inspect.IntType) -> Schema:
    return {"type": "integer", "minimum": kind.ge, "maximum": kind.le}
