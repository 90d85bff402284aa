"""Kubeconfig files: reading, merging, choosing the context.

The rules are kubectl's: of several files the first to name a thing wins, and relative paths are
relative to the file that names them. Everything that is wrong is a CredentialsError that names
the file and the place in it. Fields that would change our identity but are not supported
(impersonation) are refused by name and never ignored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from k8s_scheduler.kube.auth.login import read_file
from k8s_scheduler.kube.errors import CredentialsError


class ClusterEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """Where a cluster's API server is and how it proves itself."""

    server: str
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class UserEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """How a user authenticates; the first of these that is given counts, top to bottom."""

    auth_provider: dict[str, Any] | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    token: str | None = None
    exec: dict[str, Any] | None = None
    username: str | None = None
    password: str | None = None
    # Client certificates come in addition.
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    # Not supported, and so refused.
    as_user: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None


class ContextEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """A cluster and a user that belong together."""

    cluster: str = ""
    user: str | None = None


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: ClusterEntry


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: UserEntry


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: ContextEntry


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


E_ = TypeVar("E_")


@dataclass(frozen=True, slots=True)
class Found(Generic[E_]):
    """An entry and the file it stands in."""

    entry: E_
    file: Path

    def path(self, relative: str) -> Path:
        return (self.file.parent / relative).absolute()


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The chosen context of one or more files."""

    files: tuple[Path, ...]
    context: str
    cluster: Found[ClusterEntry]
    user: Found[UserEntry]
    # The cluster's entry as it stands in the file, for plugins that want to see it.
    raw_cluster: dict[str, Any]


def load_kubeconfig(files: Sequence[Path]) -> Kubeconfig:
    contents = {file: _read(file) for file in files}
    parsed = {file: _parse(file, content) for file, content in contents.items()}
    where = ", ".join(str(file) for file in files)
    contexts = _first_wins(
        (f, c.name, c.context) for f, p in parsed.items() for c in p.contexts or ()
    )
    clusters = _first_wins(
        (f, c.name, c.cluster) for f, p in parsed.items() for c in p.clusters or ()
    )
    users = _first_wins((f, u.name, u.user) for f, p in parsed.items() for u in p.users or ())
    name = next((file.current_context for file in parsed.values() if file.current_context), "")
    if not name:
        raise CredentialsError(f"{where}: no current-context is set{_choices(contexts)}")
    context = _pick(contexts, name, f"{where}: current-context {name!r} is not among the contexts")
    named = context.entry.cluster
    cluster = _pick(
        clusters, named, f"{where}: context {name!r} names an unknown cluster {named!r}"
    )
    user = Found(UserEntry(), context.file)
    if named_user := context.entry.user:
        user = _pick(
            users, named_user, f"{where}: context {name!r} names an unknown user {named_user!r}"
        )
    _refuse_impersonation(user, named_user or "")
    raw = contents[cluster.file]["clusters"]
    raw_cluster = next(entry["cluster"] for entry in raw if entry["name"] == named)
    return Kubeconfig(tuple(files), name, cluster, user, raw_cluster)


def _read(file: Path) -> Any:
    # Nothing of what is wrong is quoted, see _place.
    try:
        content = yaml.safe_load(read_file(file, "kubeconfig").decode())
    except yaml.YAMLError as error:
        raise CredentialsError(f"kubeconfig {file} is not valid YAML{_place(error)}") from None
    except UnicodeDecodeError as error:
        raise CredentialsError(f"kubeconfig {file} is not valid YAML: {error.reason}") from None
    except ValueError:
        reason = "a date that does not exist, or a number of thousands of digits"
        raise CredentialsError(f"kubeconfig {file} holds what can't be read: {reason}") from None
    except RecursionError:
        raise CredentialsError(f"kubeconfig {file} is nested too deep") from None
    if content is None:
        raise CredentialsError(f"kubeconfig {file} is empty")
    return content


def _place(error: yaml.YAMLError) -> str:
    """Say where and what is wrong, but nothing of what stands there: it may be a token."""
    mark = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or "").partition("'")[0].strip()
    where = "" if mark is None else f": line {mark.line + 1}, column {mark.column + 1}"
    return f"{where}: {what}" if what else where


def _parse(file: Path, content: Any) -> _File:
    try:
        return msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        raise CredentialsError(f"kubeconfig {file}: {error}") from error


def _first_wins(entries: Iterable[tuple[Path, str, E_]]) -> dict[str, Found[E_]]:
    found: dict[str, Found[E_]] = {}
    for file, name, entry in entries:
        found.setdefault(name, Found(entry, file))
    return found


def _pick(entries: dict[str, Found[E_]], name: str, complaint: str) -> Found[E_]:
    if name not in entries:
        raise CredentialsError(complaint + _choices(entries))
    return entries[name]


def _choices(entries: Iterable[str]) -> str:
    names = ", ".join(sorted(entries))
    return f" (there are: {names})" if names else " (there are none)"


def _refuse_impersonation(user: Found[UserEntry], name: str) -> None:
    entry = user.entry
    if entry.as_user or entry.as_uid or entry.as_groups:
        raise CredentialsError(
            f"kubeconfig {user.file}: user {name!r} asks to impersonate a user (as, as-uid, "
            "as-groups), which is not supported; use credentials of the user to act as"
        )
