"""From a file to a `SchedulerConfiguration`, or to one error that names everything wrong.

    text ──► YAML with lines ──► documents ──► types ──► defaults ──► flags ──► rules ──► profiles
             yaml_positions   documents   decode      here        here     validate     profiles/
                                                                           support

Errors of all steps are collected and given file and line; only a file that is no configuration
at all (not YAML, another kind) ends the walk early. A rule that a flag broke is reported under
the flag's name.

Decoding is strict, as kube-scheduler's is: unknown and repeated fields are errors. A file is one
document, and perhaps a second one of our own kind (`extras`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from k8s_scheduler.api.config.decode import decode
from k8s_scheduler.api.config.documents import Documents, parse_documents, read_documents
from k8s_scheduler.api.config.extenders import leave_to_extenders
from k8s_scheduler.api.config.extras import SchedulerExtras, extras_errors
from k8s_scheduler.api.config.field_errors import (
    ConfigurationError,
    FieldError,
    FieldPath,
    not_covered,
    render_path,
)
from k8s_scheduler.api.config.profiles.node_ownership import ownership_errors, within_own_nodes
from k8s_scheduler.api.config.profiles.resolve import resolve_profile
from k8s_scheduler.api.config.support import not_supported_yet, without_effect
from k8s_scheduler.api.config.types import (
    ClientConnection,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    PluginFacts,
    SchedulerConfiguration,
)
from k8s_scheduler.api.config.validate import validate
from k8s_scheduler.api.config.yaml_positions import Document
from k8s_scheduler.api.pod import DEFAULT_SCHEDULER_NAME

# A time, and the one that it must be longer than: a flag may have changed either.
_COMPARED_WITH: Final[Mapping[FieldPath, FieldPath]] = {
    ("leaderElection", "leaseDuration"): ("leaderElection", "renewDeadline"),
    ("leaderElection", "renewDeadline"): ("leaderElection", "retryPeriod"),
}


@dataclass(frozen=True, slots=True)
class FlagOverride:
    """A flag that was given and replaces what the file says at `path`, or only fills it in.

    `warning` is said where the file has something there, and it is lost.
    """

    flag: str
    path: tuple[str, str]
    value: str | bool | int | float
    only_if_unset: bool = False
    warning: str = ""


def load_configuration(
    path: Path,
    known: Mapping[str, PluginFacts],
    *,
    overrides: Sequence[FlagOverride] = (),
    to_run: bool = True,
) -> SchedulerConfiguration:
    """Read, check and resolve a configuration file; raises ConfigurationError with all errors.

    What is right but not supported yet is an error too, unless nothing is to be run with it:
    then it is a warning.
    """
    documents = read_documents(path)
    return _configure(documents, known, overrides=overrides, source=str(path), to_run=to_run)


def configuration_from_text(
    text: str,
    known: Mapping[str, PluginFacts],
    *,
    source: str,
    overrides: Sequence[FlagOverride] = (),
) -> SchedulerConfiguration:
    return _configure(parse_documents(text), known, overrides=overrides, source=source)


def configuration_from_value(
    value: Mapping[str, Any], known: Mapping[str, PluginFacts], *, source: str
) -> SchedulerConfiguration:
    return _configure(parse_documents(json.dumps(value)), known, source=source)


def default_configuration(
    known: Mapping[str, PluginFacts],
    *,
    overrides: Sequence[FlagOverride] = (),
) -> SchedulerConfiguration:
    """Return what holds without a file: one profile, `default-scheduler`, with all defaults."""
    return _configure(Documents(Document({}), None, []), known, overrides=overrides)


def completed(settings: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Fill in the defaults that depend on what else is there, or that empty values stand for."""
    profiles = settings.profiles or (KubeSchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        named = msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME)
        profiles = (named,)
    election = settings.leader_election
    empty = {
        field.name: field.default
        for field in msgspec.structs.fields(LeaderElection)
        if field.name != "leader_elect" and not getattr(election, field.name)
    }
    connection = settings.client_connection
    return msgspec.structs.replace(
        settings,
        profiles=profiles,
        leader_election=msgspec.structs.replace(election, **empty),
        client_connection=msgspec.structs.replace(
            connection,
            burst=connection.burst or ClientConnection().burst,
            content_type=connection.content_type or ClientConnection().content_type,
        ),
        extenders=tuple(
            msgspec.structs.replace(e, http_timeout_seconds=e.http_timeout_seconds or 5.0)
            for e in settings.extenders
        ),
    )


def _configure(
    documents: Documents,
    known: Mapping[str, PluginFacts],
    *,
    overrides: Sequence[FlagOverride] = (),
    source: str = "",
    to_run: bool = True,
) -> SchedulerConfiguration:
    document = documents.main
    if document is None:
        raise _located(documents.errors, Document(), source)
    settings, wrong = decode(KubeSchedulerConfiguration, document.value, ())
    extras, wrong_extras = _extras(documents.extras)
    settings = _override(completed(settings), overrides)
    resolutions = [
        resolve_profile(
            profile,
            ("profiles", i),
            known=known,
            percentage_of_nodes_to_score=settings.percentage_of_nodes_to_score,
        )
        for i, profile in enumerate(settings.profiles)
    ]
    unsupported = not_supported_yet(settings)
    found = validate(settings) + (unsupported if to_run else [])
    for resolution in resolutions:
        found += resolution.errors
    flags: dict[FieldPath, FieldPath] = {o.path: (o.flag,) for o in overrides}
    found = [_under_flag(error, flags) for error in found]
    errors = documents.errors + not_covered(found, wrong) + wrong + wrong_extras
    if errors:
        raise _located(errors, document, source, flags=tuple(flags.values()))
    warnings = without_effect(settings, document, known) + ([] if to_run else unsupported)
    warnings += [
        FieldError(o.path, o.warning) for o in overrides if o.warning and _is_lost(o, document)
    ]
    for resolution in resolutions:
        warnings += resolution.warnings
    return SchedulerConfiguration(
        settings=settings,
        profiles=tuple(
            within_own_nodes(
                leave_to_extenders(r.profile, settings.extenders), extras.node_ownership
            )
            for r in resolutions
        ),
        extras=extras,
        warnings=tuple(map(str, _with_lines(warnings, document, source))),
        source=source,
    )


def _extras(document: Document | None) -> tuple[SchedulerExtras, list[FieldError]]:
    """Return what the document of our own says, and what is wrong in it at its lines."""
    if document is None:
        return SchedulerExtras(), []
    extras, wrong = decode(SchedulerExtras, document.value, ())
    wrong += not_covered(ownership_errors(extras.node_ownership, ("nodeOwnership",)), wrong)
    wrong += extras_errors(extras)
    return extras, [replace(e, line=e.line or document.line_of(e.path)) for e in wrong]


def _under_flag(error: FieldError, flags: Mapping[FieldPath, FieldPath]) -> FieldError:
    """Report a rule that a flag broke under its name, also where the rule is of another time."""
    if error.path in flags:
        return replace(error, path=flags[error.path])
    flag = flags.get(_COMPARED_WITH.get(error.path, ()))
    if flag is None:
        return error
    return replace(error, path=flag, message=f"{render_path(error.path)}: {error.message}")


def _is_lost(override: FlagOverride, document: Document) -> bool:
    section, field = override.path
    return document.has(override.path) and document.value[section][field] != override.value


def _override(
    settings: KubeSchedulerConfiguration, overrides: Iterable[FlagOverride]
) -> KubeSchedulerConfiguration:
    for override in overrides:
        section, field = override.path
        section_name = _attribute(KubeSchedulerConfiguration, section)
        current = getattr(settings, section_name)
        field_name = _attribute(type(current), field)
        if override.only_if_unset and getattr(current, field_name):
            continue
        changed = msgspec.structs.replace(current, **{field_name: override.value})
        settings = msgspec.structs.replace(settings, **{section_name: changed})
    return settings


def _attribute(kind: type[msgspec.Struct], encode_name: str) -> str:
    return next(f.name for f in msgspec.structs.fields(kind) if f.encode_name == encode_name)


def _located(
    errors: Iterable[FieldError],
    document: Document,
    source: str,
    *,
    flags: Sequence[FieldPath] = (),
) -> ConfigurationError:
    return ConfigurationError(_with_lines(errors, document, source, flags=flags))


def _with_lines(
    errors: Iterable[FieldError],
    document: Document,
    source: str,
    *,
    flags: Sequence[FieldPath] = (),
) -> list[FieldError]:
    """Say where each error stands, and sort by it; what came from a flag stands in no file."""
    located = [
        error
        if error.path in flags
        else replace(error, file=source, line=error.line or document.line_of(error.path))
        for error in errors
    ]
    return sorted(located, key=lambda error: error.line or 0)
