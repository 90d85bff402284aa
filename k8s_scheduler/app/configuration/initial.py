"""The configuration to start with: what is offered, or else the last good one.

    offered ── right ──▶ start
       │ wrong, missing
       ▼
    is a place for the last good one known? ── no ──▶ every error, exit code 2
       │ yes
       ▼
    last good one ── right ──▶ start with it: loud, counted as refused, an Event
       │ wrong, missing
       ▼
    every error, and why the last good one is of no use (credentials among the reasons)

Where that place is must be known although the file is broken: from `--last-good-config-map`, which
nothing in the file can break; or else from `lastGood` in the file's SchedulerExtras document, which
is read by itself: whatever else is wrong in the file does not matter.

A server that can't be reached is no mistake of the configuration: it is waited for, and then it is
a failure (exit code 1), which a supervisor answers with a restart. What is wrong with the file is
in the log by then.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from k8s_scheduler.api.config.documents import kept_in
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.types import SchedulerConfiguration
from k8s_scheduler.api.config_maps import ConfigMap, ConfigMapName
from k8s_scheduler.app.configuration.interpretation import default, interpret
from k8s_scheduler.app.configuration.offered import (
    Offer,
    RefusedOffer,
    hash_of,
    offer_of,
    read_file,
)
from k8s_scheduler.app.options import ConfigurationFlags
from k8s_scheduler.kube.auth.loading import load_credentials
from k8s_scheduler.kube.config_maps import read_patiently
from k8s_scheduler.kube.errors import ApiError, CredentialsError, Forbidden, NotFound
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.kube.permissions import missing_permission
from k8s_scheduler.obs.metrics import Metrics

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 30.0

ReadConfigMap = Callable[[ConfigMapName], ConfigMap]


@dataclass(frozen=True, slots=True)
class Start:
    """What to start with; `refused` if it is not what was offered. Without a text: the defaults."""

    configuration: SchedulerConfiguration
    text: str | None = None
    refused: RefusedOffer | None = None

    @property
    def hash(self) -> str:
        return hash_of(self.text or "")


class StartError(Exception):
    """There is nothing to start with; the text holds every reason, one per line."""


def load_start(flags: ConfigurationFlags, *, read: ReadConfigMap | None = None) -> Start:
    """Return what to start with; raises StartError, CredentialsError or another KubeError."""
    read = read or _reader(flags)
    offer = _offered(flags, read)
    if offer is None:
        return Start(default(flags))
    try:
        configuration = interpret(flags, offer)
        place_to_keep(flags, configuration)
        return Start(configuration, offer.text)
    except (ConfigurationError, StartError) as error:
        refusal = RefusedOffer(offer.hash, offer.source, time.time(), _lines(error))
    where = flags.last_good or _place_in(offer.text, flags)
    if where is None:
        raise StartError("\n".join(refusal.errors))
    # Before a server is asked: one that is away must not hide what is wrong with the text.
    fields = {"source": offer.source, "errors": list(refusal.errors), "last_good": str(where)}
    logger.error("Configuration refused, looking for the last good one", extra={"fields": fields})
    try:
        last = _look(where, read)
        configuration = interpret(flags, last)
        place_to_keep(flags, configuration)
    except (ConfigurationError, StartError, CredentialsError) as error:
        problems = [f"last good configuration: {line}" for line in _lines(error)]
        raise StartError("\n".join([*refusal.errors, *problems])) from error
    fields = {
        "source": offer.source,
        "errors": list(refusal.errors),
        "last_good": last.source,
        "hash": last.hash,
    }
    logger.error("Configuration refused, STARTING WITH THE LAST GOOD ONE", extra={"fields": fields})
    return Start(configuration, last.text, refusal)


def place_to_keep(
    flags: ConfigurationFlags, configuration: SchedulerConfiguration
) -> ConfigMapName | None:
    """Return where the last good configuration is to be kept; the flag wins over the file.

    StartError where the file names a place that can't be one.
    """
    if flags.last_good is not None:
        return flags.last_good
    text = configuration.extras.last_good.config_map
    return _place(text, flags) if text else None


def _place(text: str, flags: ConfigurationFlags) -> ConfigMapName:
    try:
        found = in_our_namespace(ConfigMapName.parse(text), flags)
    except StartError as error:
        raise StartError(f"lastGood.configMap: {error}") from error
    if flags.config_map is not None and flags.config_map.is_in_same_map(found):
        raise StartError(
            f"lastGood.configMap: {found} holds the configuration itself; name another ConfigMap"
        )
    return found


def in_our_namespace(name: ConfigMapName, flags: ConfigurationFlags) -> ConfigMapName:
    """Fill in our own namespace; StartError if it is needed and not known."""
    if name.namespace:
        return name
    if not flags.pod_namespace:
        raise StartError(
            f"ConfigMap {name} has no namespace, and our own is not known: "
            f"write NAMESPACE/{name}, or set POD_NAMESPACE"
        )
    return name.within(flags.pod_namespace)


def _offered(flags: ConfigurationFlags, read: ReadConfigMap) -> Offer | None:
    if flags.config_map is not None:
        try:
            return _look(flags.config_map, read)
        except StartError as error:
            return Offer(str(flags.config_map), problem=str(error))
    return None if flags.config_file is None else read_file(flags.config_file)


def _look(wanted: ConfigMapName, read: ReadConfigMap) -> Offer:
    """Return what a ConfigMap holds; StartError if that is nothing to start with."""
    try:
        offer = offer_of(wanted, read(wanted))
    except NotFound as error:
        place = f"{wanted.namespace}/{wanted.name}"
        raise StartError(f"ConfigMap {place} does not exist") from error
    except Forbidden as error:
        missing = missing_permission(error, "configmaps", namespace=wanted.namespace)
        why = f"{missing}: {error.message}" if missing else error.message
        raise StartError(f"ConfigMap {wanted} may not be read: {why}") from error
    except ApiError as error:
        if error.status >= 500 or error.status == 429:
            raise
        raise StartError(f"ConfigMap {wanted} cannot be read: {error}") from error
    if offer.problem:
        raise StartError(offer.problem)
    return offer


def _place_in(text: str, flags: ConfigurationFlags) -> ConfigMapName | None:
    place = kept_in(text)
    if not place:
        return None
    try:
        return _place(place, flags)
    except StartError:
        return None


def _lines(error: Exception) -> tuple[str, ...]:
    return tuple(str(error).splitlines())


def _reader(flags: ConfigurationFlags) -> ReadConfigMap:

    async def ask(wanted: ConfigMapName) -> ConfigMap:
        credentials = await load_credentials(flags.kubeconfig)
        async with ApiTransport(credentials, metrics=Metrics().kube) as transport:
            return await read_patiently(transport, wanted, patience_seconds=PATIENCE_SECONDS)

    return lambda wanted: asyncio.run(ask(wanted))
