"""Configurations: arguments of plugins, and plugins switched on, off and to other weights."""

from tests.conformance.oracle.gen_draws import HOST, ZONE
from tests.conformance.oracle.gen_terms import Terms


class Configurations(Terms):
    """Draws a configuration, or none."""

    def make_config(self):
        r = self.r
        prof, plugin_config = {"schedulerName": "default-scheduler"}, []
        if self.on("resources", "preemption") and self.p(0.7):
            typ = r.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
            res = r.choice(
                [
                    [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                    [
                        {"name": "cpu", "weight": 3},
                        {"name": "memory", "weight": 1},
                        {"name": "example.com/gpu", "weight": 5},
                    ],
                    [{"name": "memory", "weight": 2}],
                ]
            )
            ss = {"type": typ, "resources": res}
            if typ == "RequestedToCapacityRatio":
                ss["requestedToCapacityRatio"] = {
                    "shape": r.choice(
                        [
                            [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
                            [
                                {"utilization": 0, "score": 10},
                                {"utilization": 70, "score": 5},
                                {"utilization": 100, "score": 0},
                            ],
                        ]
                    )
                }
            args = {"scoringStrategy": ss}
            if self.p(0.3):
                args["ignoredResources"] = ["example.com/gpu"]
            plugin_config.append({"name": "NodeResourcesFit", "args": args})
            if self.p(0.4):
                plugin_config.append(
                    {
                        "name": "NodeResourcesBalancedAllocation",
                        "args": {
                            "resources": [
                                {"name": "cpu", "weight": 1},
                                {"name": "memory", "weight": 1},
                                {"name": "ephemeral-storage", "weight": 1},
                            ]
                        },
                    }
                )
        if self.on("interpod") and self.p(0.4):
            plugin_config.append(
                {
                    "name": "InterPodAffinity",
                    "args": {
                        "hardPodAffinityWeight": r.choice([0, 1, 50]),
                        "ignorePreferredTermsOfExistingPods": self.p(0.3),
                    },
                }
            )
        if self.on("spread") and self.p(0.4):
            plugin_config.append(
                {
                    "name": "PodTopologySpread",
                    "args": r.choice(
                        [
                            {"defaultingType": "System"},
                            {
                                "defaultingType": "List",
                                "defaultConstraints": [
                                    {
                                        "maxSkew": 1,
                                        "topologyKey": ZONE,
                                        "whenUnsatisfiable": "ScheduleAnyway",
                                    }
                                ],
                            },
                            {
                                "defaultingType": "List",
                                "defaultConstraints": [
                                    {
                                        "maxSkew": 1,
                                        "topologyKey": HOST,
                                        "whenUnsatisfiable": "DoNotSchedule",
                                    }
                                ],
                            },
                        ]
                    ),
                }
            )
        if self.on("nodeaffinity") and self.p(0.3):
            plugin_config.append(
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [self.node_term()]
                            }
                        }
                        if self.p(0.5)
                        else {
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {"weight": 10, "preference": self.node_term()}
                            ]
                        }
                    },
                }
            )
        if self.p(0.3):
            prof["plugins"] = r.choice(
                [
                    {
                        "score": {
                            "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
                            "enabled": [{"name": "TaintToleration", "weight": 7}],
                        }
                    },
                    {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}},
                    {"multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 4}]}},
                    {
                        "score": {
                            "disabled": [{"name": "*"}],
                            "enabled": [
                                {"name": "NodeResourcesFit", "weight": 2},
                                {"name": "NodeAffinity", "weight": 3},
                            ],
                        }
                    },
                    {"filter": {"disabled": [{"name": "TaintToleration"}]}},
                ]
            )
        if plugin_config:
            prof["pluginConfig"] = plugin_config
        if len(prof) > 1:
            self.config = {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [prof],
            }
