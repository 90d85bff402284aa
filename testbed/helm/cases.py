"""Values that people set, each on top of the chart's own, and values that have to be refused.

Between them they touch every value of the chart; a unit test sees to that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """Values, and by what of the rendering one can see that they had their effect.

    `adds` and `drops` are objects, as `Kind/name`, that the defaults do not have and have; `says`
    are texts that stand somewhere in it.
    """

    values: Values = field(default_factory=dict)
    adds: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    # Whether pods of it pass the restricted Pod Security level: what does not is only rendered.
    restricted: bool = True


_OWN_NODES: Final = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "example.com/ours", "operator": "Exists"}]},
    ]
}

# Names of what belongs to no namespace end in that of the release.
_ENDING: Final = ".scheduling"
_SHADOW: Final = (
    *(f"{kind}/k8s-scheduler-shadow" for kind in ("ServiceAccount", "Deployment", "NetworkPolicy")),
    f"ClusterRole/k8s-scheduler-shadow{_ENDING}",
    f"ClusterRoleBinding/k8s-scheduler-shadow{_ENDING}",
)

_DIGEST: Final = "sha256:" + 64 * "a"

CASES: Final[Mapping[str, Case]] = {
    "defaults": Case(),
    "one replica": Case(
        {"replicaCount": 1}, drops=("PodDisruptionBudget/k8s-scheduler",), says=("replicas: 1",)
    ),
    "no replica for now": Case({"replicaCount": 0}, drops=("PodDisruptionBudget/k8s-scheduler",)),
    "no leader election": Case(
        {"replicaCount": 1, "config": {"leaderElection": {"leaderElect": False}}},
        drops=(
            "PodDisruptionBudget/k8s-scheduler",
            "Role/k8s-scheduler-leader-election",
            "RoleBinding/k8s-scheduler-leader-election",
        ),
        # Two would decide at once while one replaces the other.
        says=("type: Recreate",),
    ),
    "another Lease": Case(
        {"config": {"leaderElection": {"resourceName": "mine"}}}, says=('resourceNames: ["mine"]',)
    ),
    "an image of one's own": Case(
        {
            "image": {"repository": "example.com/a/b", "tag": "1.2.3", "pullPolicy": "Always"},
            "imagePullSecrets": [{"name": "pull"}],
        },
        says=('image: "example.com/a/b:1.2.3"', "imagePullPolicy: Always", "- name: pull"),
    ),
    "an image by its digest": Case(
        {"image": {"digest": _DIGEST}}, says=(f'image: "k8s-scheduler:0.1.0@{_DIGEST}"',)
    ),
    "the network of the nodes": Case(
        {"hostNetwork": True},
        says=(
            "hostNetwork: true",
            "dnsPolicy: ClusterFirstWithHostNet",
            "maxSurge: 0",
            "requiredDuringSchedulingIgnoredDuringExecution",
        ),
        restricted=False,
    ),
    "an account of one's own": Case(
        {"serviceAccount": {"create": False, "name": "mine"}},
        drops=("ServiceAccount/k8s-scheduler",),
        says=('serviceAccountName: "mine"',),
    ),
    "roles of one's own": Case(
        {"rbac": {"create": False}},
        drops=(
            f"ClusterRole/k8s-scheduler{_ENDING}",
            f"ClusterRoleBinding/k8s-scheduler{_ENDING}",
            "Role/k8s-scheduler-leader-election",
            "RoleBinding/k8s-scheduler-leader-election",
            "Role/k8s-scheduler-configuration",
            "RoleBinding/k8s-scheduler-configuration",
        ),
    ),
    "readers": Case(
        {
            "metricsReader": {
                "subjects": [{"kind": "ServiceAccount", "name": "p", "namespace": "monitoring"}]
            },
            "configReader": {"subjects": [{"kind": "Group", "name": "operators"}]},
        },
        adds=(
            f"ClusterRoleBinding/k8s-scheduler-metrics-reader{_ENDING}",
            f"ClusterRoleBinding/k8s-scheduler-config-reader{_ENDING}",
        ),
    ),
    "no readers": Case(
        {"metricsReader": {"create": False}, "configReader": {"create": False}},
        drops=(
            f"ClusterRole/k8s-scheduler-metrics-reader{_ENDING}",
            f"ClusterRole/k8s-scheduler-config-reader{_ENDING}",
        ),
    ),
    "no network policy": Case(
        {"networkPolicy": {"enabled": False}}, drops=("NetworkPolicy/k8s-scheduler",)
    ),
    "a narrow network policy": Case(
        {
            "networkPolicy": {
                "ingressFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
                "egress": {
                    "enabled": True,
                    "apiServerPorts": [6443],
                    "apiServerCidrs": ["10.0.0.10/32"],
                    "dns": True,
                },
            }
        },
        says=("policyTypes: [Ingress, Egress]", 'cidr: "10.0.0.10/32"', "port: 53"),
    ),
    "a shadow": Case(
        {
            "shadow": {
                "enabled": True,
                "schedulerNames": ["default-scheduler", "other=k8s-scheduler"],
                "extraArgs": ["--sample=0.1"],
            }
        },
        adds=_SHADOW,
        says=("--sample=0.1",),
    ),
    "configuration through the API": Case(
        {"configFromApi": True}, says=("--config-map=$(POD_NAMESPACE)/k8s-scheduler:config.yaml",)
    ),
    "no last good configuration": Case(
        {"lastGood": {"enabled": False}}, drops=("ConfigMap/k8s-scheduler-last-good",)
    ),
    "nodes of one's own": Case(
        {"extras": {"nodeOwnership": {"nodeSelector": _OWN_NODES}, "batch": {"maxPods": 32}}},
        says=("kind: SchedulerExtras", "key: example.com/ours"),
    ),
    "a limit on victims": Case(
        {"extras": {"preemption": {"maxVictimsPerMinute": 60}}},
        says=("kind: SchedulerExtras", "maxVictimsPerMinute: 60"),
    ),
    "rivals that are waited for": Case(
        {"extras": {"rivals": {"action": "Refuse", "namespaces": ["scheduling"]}}},
        adds=(
            f"Role/k8s-scheduler{_ENDING}-rivals",
            f"RoleBinding/k8s-scheduler{_ENDING}-rivals",
        ),
        says=("action: Refuse",),
    ),
    "profiles of one's own": Case(
        {
            "config": {
                "podMaxBackoffSeconds": 1000000,
                "percentageOfNodesToScore": 50,
                "clientConnection": {"qps": 100, "burst": 200},
                "profiles": [
                    {"schedulerName": "a"},
                    {
                        "schedulerName": "b",
                        "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
                    },
                ],
            }
        },
        says=("schedulerName: b", "name: ImageLocality"),
    ),
    "a certificate": Case(
        {"tls": {"secretName": "serving"}, "shadow": {"enabled": True}},
        adds=_SHADOW,
        says=("--tls-cert-file=/etc/kubernetes/k8s-scheduler-tls/tls.crt", 'secretName: "serving"'),
    ),
    "a place and a look of one's own": Case(
        {
            "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
            "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
            "podAnnotations": {"example.com/a": "b"},
            "priorityClassName": "",
            "terminationGracePeriodSeconds": 90,
            "resources": {"requests": {"cpu": "1"}},
            "podSecurityContext": {"fsGroup": 1000},
            "securityContext": {"readOnlyRootFilesystem": True},
            "logging": {"format": "text", "verbosity": 4},
            "extraArgs": ["--pod-max-in-unschedulable-pods-duration=10m", "--verify-cache=0.01"],
            "flowSchema": {"enabled": False},
        },
        drops=(
            f"FlowSchema/k8s-scheduler{_ENDING}",
            f"FlowSchema/k8s-scheduler-leader-election{_ENDING}",
            f"FlowSchema/k8s-scheduler-reviews{_ENDING}",
        ),
        says=("example.com/a: b", "-v=4", "--verify-cache=0.01", "--logging-format=text"),
    ),
}


def _profiles(*plugins: Mapping[str, Any]) -> Values:
    named = [{"schedulerName": f"s{n}", "plugins": each} for n, each in enumerate(plugins)]
    return {"config": {"profiles": named}}


def _off(point: str, *names: str) -> Mapping[str, Any]:
    return {point: {"disabled": [{"name": name} for name in names]}}


# Values whose roles have to be those that `k8s-scheduler rbac` prints for them.
ROLES: Final[Mapping[str, Values]] = {
    "defaults": {},
    "no preemption": _profiles(_off("postFilter", "*")),
    "no preemption at any point": _profiles(_off("multiPoint", "DefaultPreemption")),
    "no late binding": _profiles(_off("preBind", "VolumeBinding")),
    "no volumes": _profiles(
        _off("multiPoint", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
    ),
    "no pods near each other": _profiles(
        _off("multiPoint", "InterPodAffinity", "PodTopologySpread", "DynamicResources")
    ),
    "rivals in two namespaces": {
        "extras": {"rivals": {"namespaces": ["scheduling", "kube-system"]}}
    },
    "rivals that are ignored": {"extras": {"rivals": {"action": "Ignore"}}},
    "one of two profiles": _profiles(_off("postFilter", "*"), {}),
    "few plugins": _profiles(
        {
            "multiPoint": {
                "disabled": [{"name": "*"}],
                "enabled": [
                    {"name": name}
                    for name in ("PrioritySort", "NodeResourcesFit", "VolumeZone", "DefaultBinder")
                ],
            }
        }
    ),
}

# Another name changes the name of every object, so it is compared with nothing. This one is a name
# only where it is quoted.
RENAMED: Final = Case({"fullnameOverride": "true"}, says=('name: "true"',))

# Values, and what helm has to say about them.
REFUSED: Final[Mapping[str, tuple[Values, str]]] = {
    "a value that does not exist": (
        {"replicas": 2},
        "additional properties 'replicas' not allowed",
    ),
    "a digest that is none": ({"image": {"digest": "abc"}}, "/image/digest"),
    "a name that cannot be": ({"fullnameOverride": "Mine_too"}, "/fullnameOverride"),
    "two that decide": (
        {"config": {"leaderElection": {"leaderElect": False}}},
        "replicaCount above 1 needs config.leaderElection.leaderElect: true",
    ),
    "a Lease where its Role is not": (
        {"config": {"leaderElection": {"resourceNamespace": "elsewhere"}}},
        "config.leaderElection.resourceNamespace: the Lease is in the release's namespace",
    ),
    "a place for the last good one without a right to it": (
        {"extras": {"lastGood": {"configMap": "mine"}}},
        "extras.lastGood: use lastGood.enabled",
    ),
    "an account without a name": (
        {"serviceAccount": {"create": False}},
        "serviceAccount.create: false needs serviceAccount.name",
    ),
    "the type of the configuration": ({"config": {"kind": "X"}}, "/config"),
    "a flag that is none": ({"extraArgs": ["verbose"]}, "/extraArgs/0"),
    **{
        f"nothing for {name}": ({name: None}, f"missing property '{name}'")
        for name in ("shadow", "lastGood", "tls", "networkPolicy", "config", "configFromApi")
    },
}
