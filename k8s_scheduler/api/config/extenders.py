"""The rules of extenders: kube-scheduler's own, and what would fail at the first call.

kube-scheduler takes an extender without a usable address, or a client certificate without its
key, and finds out while pods wait; here that is an error of the file.
"""

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from k8s_scheduler.api.config.field_errors import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    required,
)
from k8s_scheduler.api.config.types import ExtenderSettings, ExtenderTLSConfig, ResolvedProfile
from k8s_scheduler.api.names import (
    QUALIFIED_NAME_RULE,
    is_extended_resource_name,
    is_qualified_name,
)
from k8s_scheduler.obs.redaction import REDACTED

_FIT: Final = "NodeResourcesFit"
_EXAMPLE: Final = 'write it like "http://127.0.0.1:8888/scheduler"'


def validate_extenders(extenders: tuple[ExtenderSettings, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path: FieldPath = ("extenders", i)
        errors += _address(extender.url_prefix, (*path, "urlPrefix"))
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            errors.append(invalid((*path, "weight"), extender.weight, detail))
        if extender.tls_config is not None:
            errors += _tls(extender.tls_config, (*path, "tlsConfig"))
        for j, resource in enumerate(extender.managed_resources):
            at = (*path, "managedResources", j, "name")
            errors += _managed_resource(resource.name, at, managed)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        errors.append(invalid(("extenders",), found, "only one extender can implement bind"))
    return errors


def leave_to_extenders(
    profile: ResolvedProfile, extenders: tuple[ExtenderSettings, ...]
) -> ResolvedProfile:
    """Have NodeResourcesFit ignore what extenders look after; as upstream, its own list yields."""
    fit = profile.plugin_args.get(_FIT)
    ignored = [
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]
    if fit is None or not ignored:
        return profile
    args = {**profile.plugin_args, _FIT: {**fit, "ignoredResources": ignored}}
    return replace(profile, plugin_args=args)


def shown_address(url: str) -> str:
    """Return an address as it may be shown: without a password, however badly it is written."""
    secret, at, _ = (urlsplit(url).netloc if _is_usable(url) else url).rpartition("@")
    secret = secret.rpartition("://")[2]
    return url.replace(f"{secret}{at}", f"{REDACTED}@", 1) if at else url


def _address(url: str, path: FieldPath) -> list[FieldError]:
    if not url:
        return [required(path, _EXAMPLE)]
    if _is_usable(url):
        return []
    return [invalid(path, shown_address(url), f"must be a URL; {_EXAMPLE}")]


def _is_usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that does not close
        return False


def _tls(tls: ExtenderTLSConfig, path: FieldPath) -> list[FieldError]:
    errors = []
    if tls.insecure and (tls.ca_file or tls.ca_data):
        detail = "specifying a root certificates file with the insecure flag is not allowed"
        errors.append(forbidden((*path, "insecure"), detail))
    has_certificate = bool(tls.cert_file or tls.cert_data)
    has_key = bool(tls.key_file or tls.key_data)
    if has_certificate and not has_key:
        errors.append(required((*path, "keyFile"), "the certificate needs its key"))
    if has_key and not has_certificate:
        errors.append(required((*path, "certFile"), "the key needs its certificate"))
    return errors


def _managed_resource(name: str, path: FieldPath, seen: set[str]) -> list[FieldError]:
    if not is_qualified_name(name):
        return [invalid(path, name, QUALIFIED_NAME_RULE)]
    if name in seen:
        return [invalid(path, name, "duplicate extender managed resource name")]
    seen.add(name)
    if not is_extended_resource_name(name):
        return [invalid(path, name, "is an invalid extended resource name")]
    return []
