"""What the configuration tests share: the plugins that exist, and a file that is loaded."""

from k8s_scheduler.api.config_defaults import upstream_plugins
from k8s_scheduler.api.config_load import load_configuration
from k8s_scheduler.api.config_plugin_args import validate_node_resources_fit
from k8s_scheduler.api.field_errors import ConfigurationError

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

KNOWN = upstream_plugins(
    {
        "SchedulingGates": None,
        "PrioritySort": None,
        "NodeName": None,
        "NodeUnschedulable": None,
        "TaintToleration": None,
        "NodeResourcesFit": validate_node_resources_fit,
        "DefaultBinder": None,
    }
)


def load_text(folder, text, *, known=KNOWN, overrides=()):
    """Load a configuration from text."""
    path = folder / "config.yaml"
    path.write_text(text)
    return load_configuration(path, known, overrides=overrides)


def messages_of(folder, text, **options):
    """Return the lines of the error that a text gives, from the file's name on."""
    try:
        load_text(folder, text, **options)
    except ConfigurationError as error:
        return str(error).replace(f"{folder}/", "").splitlines()
    return []
