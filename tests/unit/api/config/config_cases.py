"""What the configuration tests share: the plugins that exist, and a file that is loaded."""

import yaml

from k8s_scheduler.api.config.defaults_file import defaults_file
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.load import load_configuration
from k8s_scheduler.api.config.profiles.defaults import DEFAULT_MULTI_POINT, upstream_plugins

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
EXTRAS = "apiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"

# Everything that is on by default; what is behind a gate is not there.
KNOWN = upstream_plugins(DEFAULT_MULTI_POINT)
# A version that lacks most of it.
FEW = upstream_plugins(
    (
        "SchedulingGates",
        "PrioritySort",
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeResourcesFit",
        "DefaultBinder",
    )
)


def load_text(folder, text, *, known=KNOWN, **options):
    """Load a configuration from text."""
    path = folder / "config.yaml"
    path.write_text(text)
    return load_configuration(path, known, **options)


def messages_of(folder, text, **options):
    """Return the lines of the error that a text gives, from the file's name on."""
    try:
        load_text(folder, text, **options)
    except ConfigurationError as error:
        return str(error).replace(f"{folder}/", "").splitlines()
    return []


def default_documents(known=KNOWN):
    """Return the documents of the file of defaults: kube-scheduler's and ours."""
    main, extras = yaml.safe_load_all(defaults_file(known))
    return main, extras
