"""What the configuration tests share: the plugins that exist, and a file that is loaded."""

from dataclasses import replace

import yaml

from k8s_scheduler.api.config.defaults_file import defaults_file
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.load import load_configuration
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.framework.registry import ProfilePlace

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
EXTRAS = "apiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"

# kube-scheduler's default profile, in its order.
DEFAULT_MULTI_POINT = (
    "SchedulingGates",
    "PrioritySort",
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
)


OURS = [name for name, plugin in BUILT_INS.items() if plugin.place is ProfilePlace.NAMED]


def supporting(names):
    """Return kube-scheduler's plugins in a version that has only these."""
    return {
        name: replace(facts, supported=name in names)
        for name, facts in known_plugins().items()
        if name not in OURS
    }


# Everything that is on by default; what is behind a gate is not there.
KNOWN = supporting(DEFAULT_MULTI_POINT)
ARGUMENTS = {name: facts.arguments for name, facts in KNOWN.items() if facts.arguments}
# A version that lacks most of it.
FEW = supporting(
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
