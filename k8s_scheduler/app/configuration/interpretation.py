"""The configuration of this process: flags, file and the plugins that exist, put together.

Precedence, as in kube-scheduler: explicit `--leader-elect*` flags over the file; the file over
`--kube-api-qps` and `--kube-api-burst`, which count only without `--config`. One difference:
`--kubeconfig` counts with `--config` too, unless the file names a kubeconfig of its own;
kube-scheduler ignores the flag then and fails outside a cluster. With `--config-map` it counts
whatever the text says: it has to be known before the text is.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from k8s_scheduler.api.config.field_errors import ConfigurationError, FieldError
from k8s_scheduler.api.config.load import (
    FlagOverride,
    configuration_from_text,
    default_configuration,
)
from k8s_scheduler.api.config.types import PluginFacts, SchedulerConfiguration
from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.configuration.offered import Offer, read_file
from k8s_scheduler.app.options import ConfigurationFlags

_CONNECTION = "clientConnection"
_SAME_LOGIN = (
    "the login that read the ConfigMap, of --kubeconfig or of the pod, stays; it has no effect"
)

logger = logging.getLogger(__name__)


def known_plugins() -> Mapping[str, PluginFacts]:
    """Return the facts of every plugin; the core is loaded only when they are asked for."""
    from k8s_scheduler.core.setup import known_plugins as ask_core  # noqa: PLC0415  see above

    return ask_core()


def load(flags: ConfigurationFlags) -> SchedulerConfiguration:
    """Return the configuration in effect; ConfigurationError holds everything that is wrong."""
    if flags.config_file is None:
        return default(flags)
    return interpret(flags, read_file(flags.config_file))


def default(flags: ConfigurationFlags) -> SchedulerConfiguration:
    """Return the configuration without a file; ConfigurationError if flags are wrong."""
    overrides = (*flags.leader_election, *_connection_flags(flags))
    return default_configuration(known_plugins(), overrides=overrides)


def interpret(flags: ConfigurationFlags, offer: Offer) -> SchedulerConfiguration:
    """Return what a text means beside the flags, made sure that it can be run.

    ConfigurationError holds everything that is wrong.
    """
    found = read(flags, offer)
    with refusing(offer):
        from k8s_scheduler.core.setup import Setup  # noqa: PLC0415  see above

        Setup(profiles=found.profiles).compiled()
    return found


def read(flags: ConfigurationFlags, offer: Offer) -> SchedulerConfiguration:
    """Return what a text means beside the flags; its profiles are not compiled yet."""
    if offer.problem:
        raise ConfigurationError([FieldError((), offer.problem)])
    with refusing(offer):
        return configuration_from_text(
            offer.text, known_plugins(), source=offer.source, overrides=_overrides(flags)
        )


@contextmanager
def refusing(offer: Offer) -> Iterator[None]:
    """Make a ConfigurationError of whatever fails.

    A text on which our own code fails is refused like any other: a user who can change the
    configuration must not be able to end the daemon.
    """
    from k8s_scheduler.core.setup import ProfileError  # noqa: PLC0415  see above

    try:
        yield
    except ConfigurationError:
        raise
    except ProfileError as error:
        raise ConfigurationError([FieldError((), str(error), file=offer.source)]) from error
    except Exception as error:
        fields = {"source": offer.source, "hash": offer.hash}
        logger.exception("Interpreting the configuration failed", extra={"fields": fields})
        # Without the error's own words: they may quote what must not be in an Event.
        kind = type(error).__name__
        message = f"cannot be interpreted: {kind} in the scheduler, a defect; its log has more"
        raise ConfigurationError([FieldError((), message, file=offer.source)]) from error


def _overrides(flags: ConfigurationFlags) -> tuple[FlagOverride, ...]:
    path = (_CONNECTION, "kubeconfig")
    if flags.config_map is not None:
        # The login that has read the ConfigMap stays.
        same = FlagOverride("--config-map", path, flags.kubeconfig or "", warning=_SAME_LOGIN)
        return (*flags.leader_election, same)
    if flags.kubeconfig:
        fallback = FlagOverride("--kubeconfig", path, flags.kubeconfig, only_if_unset=True)
        return (*flags.leader_election, fallback)
    return flags.leader_election


def log_warnings(configuration: SchedulerConfiguration, flags: ConfigurationFlags) -> None:
    for warning in (*configuration.warnings, *_ignored_flags(configuration, flags)):
        logger.warning("Configuration has no effect", extra={"fields": {"reason": warning}})
    for profile in configuration.profiles:
        if profile.left_out:
            fields = {"profile": profile.scheduler_name, "plugins": list(profile.left_out)}
            logger.info("Default plugins not supported yet are left out", extra={"fields": fields})


def _connection_flags(flags: ConfigurationFlags) -> list[FlagOverride]:
    given = {
        "kubeconfig": ("--kubeconfig", flags.kubeconfig),
        "qps": ("--kube-api-qps", flags.kube_api_qps),
        "burst": ("--kube-api-burst", flags.kube_api_burst),
    }
    return [
        FlagOverride(flag, (_CONNECTION, field), value)
        for field, (flag, value) in given.items()
        if value is not None
    ]


def _ignored_flags(configuration: SchedulerConfiguration, flags: ConfigurationFlags) -> list[str]:
    connection = configuration.settings.client_connection
    if flags.config_file is None and flags.config_map is None:
        if flags.kube_api_burst is not None and connection.qps <= 0:
            return ["--kube-api-burst: there is no limit unless --kube-api-qps is set"]
        return []
    given = "file given by --config" if flags.config_map is None else "ConfigMap of --config-map"
    ignored = []
    if flags.kube_api_qps is not None:
        ignored.append(f"--kube-api-qps: set clientConnection.qps in the {given}")
    if flags.kube_api_burst is not None:
        ignored.append(f"--kube-api-burst: set clientConnection.burst in the {given}")
    if flags.kubeconfig and connection.kubeconfig != flags.kubeconfig:
        ignored.append(f"--kubeconfig: the {given} names {connection.kubeconfig} instead")
    place = configuration.extras.last_good.config_map
    if flags.last_good is not None and place:
        named = ConfigMapName.parse(place)
        if not flags.last_good.is_in_same_map(named.within(flags.pod_namespace)):
            ignored.append(f"lastGood.configMap: --last-good-config-map={flags.last_good} wins")
    return ignored
