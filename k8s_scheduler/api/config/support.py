"""Where a valid configuration asks for more than this version does.

Never silence. *Not supported yet*: the value would change decisions and nothing acts on it, so
running without it would be running something else than was asked for; the scheduler does not
start, and `config check` says so. *Without effect*: decisions do not depend on the value; the
sentence says why. When a feature arrives, its entry leaves this module.
"""

from collections.abc import Mapping

from k8s_scheduler.api.config.arguments import default_args
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath
from k8s_scheduler.api.config.types import MOST_PARALLELISM, KubeSchedulerConfiguration, PluginFacts
from k8s_scheduler.api.config.yaml_positions import Document

_NO_PROFILER = "there is no Go runtime to profile; it has no effect"
_ONLY_JSON = "this scheduler speaks JSON; it has no effect"
_REFUSED = (
    "extenders are not supported yet, and pods would be placed without its say; remove it, or "
    'set "ignorable: true" to run as if it could not be reached'
)
_UNREACHED = (
    "extenders are not supported yet; as it is ignorable, the scheduler runs as if it could not be "
    "reached"
)
_DYNAMIC_RESOURCES = "DynamicResources"
_NO_DEVICES = "dynamic resources are not supported yet; it has no effect"


def not_supported_yet(settings: KubeSchedulerConfiguration) -> list[FieldError]:
    return [
        FieldError(("extenders", i), _REFUSED)
        for i, extender in enumerate(settings.extenders)
        if not extender.ignorable
    ]


def without_effect(
    settings: KubeSchedulerConfiguration, document: Document, known: Mapping[str, PluginFacts]
) -> list[FieldError]:
    """Return what the file sets to something else than the default although nothing follows."""
    warnings = [
        FieldError(("extenders", i), _UNREACHED)
        for i, extender in enumerate(settings.extenders)
        if extender.ignorable
    ]
    warnings += _devices(settings, known)
    connection, defaults = settings.client_connection, KubeSchedulerConfiguration()
    changed: Mapping[FieldPath, tuple[bool, str]] = {
        ("parallelism",): (
            settings.parallelism > MOST_PARALLELISM,
            f"more than {MOST_PARALLELISM} are not used; it counts as {MOST_PARALLELISM}",
        ),
        ("enableProfiling",): (
            settings.enable_profiling != defaults.enable_profiling,
            _NO_PROFILER,
        ),
        ("enableContentionProfiling",): (
            settings.enable_contention_profiling != defaults.enable_contention_profiling,
            _NO_PROFILER,
        ),
        ("clientConnection", "acceptContentTypes"): (
            connection.accept_content_types not in ("", "application/json"),
            _ONLY_JSON,
        ),
        ("clientConnection", "contentType"): (
            connection.content_type != defaults.client_connection.content_type,
            _ONLY_JSON,
        ),
        ("clientConnection", "burst"): (
            connection.qps <= 0 and connection.burst != defaults.client_connection.burst,
            "there is no limit unless qps is set; it has no effect",
        ),
    }
    warnings += [
        FieldError(path, reason)
        for path, (differs, reason) in changed.items()
        if differs and document.has(path)
    ]
    return warnings


def _devices(
    settings: KubeSchedulerConfiguration, known: Mapping[str, PluginFacts]
) -> list[FieldError]:
    """Return the times set for DynamicResources, which has nothing to wait for yet."""
    facts = known.get(_DYNAMIC_RESOURCES)
    defaults = default_args(facts.arguments) if facts and facts.arguments else {}
    return [
        FieldError(("profiles", i, "pluginConfig", j, "args", argument), _NO_DEVICES)
        for i, profile in enumerate(settings.profiles)
        for j, config in enumerate(profile.plugin_config)
        if config.name == _DYNAMIC_RESOURCES
        for argument in defaults
        if config.args.get(argument, defaults[argument]) != defaults[argument]
    ]
