"""Arguments of plugins that are wrong."""

import pytest

from tests.unit.api.config.config_cases import HEADER, messages_of

CASES = {
    "args of a plugin that does not exist": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourceFit
""",
        [
            (
                'config.yaml:5: profiles[0].pluginConfig[0].name: plugin "NodeResourceFit" does '
                'not exist; did you mean "NodeResourcesFit"?'
            )
        ],
    ),
    "args of a plugin behind a gate": (
        """\
profiles:
- pluginConfig:
  - name: GangScheduling
    args: {}
""",
        [
            (
                'config.yaml:5: profiles[0].pluginConfig[0].name: plugin "GangScheduling" is not '
                "supported yet"
            )
        ],
    ),
    "args of a plugin that takes none": (
        """\
profiles:
- pluginConfig:
  - name: ImageLocality
    args: {maxContainerThreshold: 1}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args: Forbidden: plugin "
                '"ImageLocality" takes no arguments'
            )
        ],
    ),
    "args of another version": (
        """\
profiles:
- pluginConfig:
  - name: VolumeBinding
    args:
      apiVersion: kubescheduler.config.k8s.io/v1beta3
""",
        [
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.apiVersion: Invalid value: "
                '"kubescheduler.config.k8s.io/v1beta3": must be "kubescheduler.config.k8s.io/v1"'
            )
        ],
    ),
    "args of a removed plugin": (
        """\
profiles:
- pluginConfig:
  - name: CinderLimits
""",
        [
            (
                'config.yaml:5: profiles[0].pluginConfig[0].name: plugin "CinderLimits" was '
                "removed from kube-scheduler; NodeVolumeLimits does its work"
            )
        ],
    ),
    "args given twice": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
  - name: NodeResourcesFit
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[1].name: Duplicate value: "
                '"NodeResourcesFit": also at profiles[0].pluginConfig[0].name'
            )
        ],
    ),
    "args without a name": (
        """\
profiles:
- pluginConfig:
  - args: {}
""",
        ["config.yaml:5: profiles[0].pluginConfig[0].name: Required value"],
    ),
    "args of another kind": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      kind: VolumeBindingArgs
""",
        [
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.kind: Invalid value: "
                '"VolumeBindingArgs": must be "NodeResourcesFitArgs"'
            )
        ],
    ),
    "unknown argument": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResource: []
""",
        [
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.ignoredResource: unknown field "
                '"ignoredResource"; did you mean "ignoredResources"?'
            )
        ],
    ),
    "resource that is no name": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: [-gpu, 'a/b/c']
""",
        [
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.ignoredResources[0]: Invalid "
                'value: "-gpu": must be a qualified name: up to 63 letters, digits, "-", "_" or '
                '".", with a letter or digit at both ends, after an optional DNS name and "/"'
            ),
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.ignoredResources[1]: Invalid "
                'value: "a/b/c": must be a qualified name: up to 63 letters, digits, "-", "_" or '
                '".", with a letter or digit at both ends, after an optional DNS name and "/"'
            ),
        ],
    ),
    "resource group with a slash": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResourceGroups: [example.com/gpu, '-']
""",
        [
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.ignoredResourceGroups[0]: "
                "Invalid value: \"example.com/gpu\": resource group name can't contain '/'"
            ),
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.ignoredResourceGroups[1]: "
                'Invalid value: "-": must be a qualified name: up to 63 letters, digits, "-", '
                '"_" or ".", with a letter or digit at both ends, after an optional DNS name and '
                '"/"'
            ),
        ],
    ),
    "strategy without type": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {}
""",
        [
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.scoringStrategy.type: "
                'Unsupported value: "": supported values: "LeastAllocated", "MostAllocated", '
                '"RequestedToCapacityRatio"'
            )
        ],
    ),
    "strategy that does not exist": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: LeastAllocate}
""",
        [
            (
                "config.yaml:7: profiles[0].pluginConfig[0].args.scoringStrategy.type: "
                'Unsupported value: "LeastAllocate": supported values: "LeastAllocated", '
                '"MostAllocated", "RequestedToCapacityRatio"; did you mean "LeastAllocated"?'
            )
        ],
    ),
    "balance of unequal weights": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesBalancedAllocation
    args:
      resources:
      - {name: cpu, weight: 2}
      - {name: cpu}
""",
        [
            (
                "config.yaml:8: profiles[0].pluginConfig[0].args.resources[0].weight: "
                "Invalid value: 2: must be 1"
            ),
            (
                "config.yaml:9: profiles[0].pluginConfig[0].args.resources[1].name: "
                'Duplicate value: "cpu": also at '
                "profiles[0].pluginConfig[0].args.resources[0].name"
            ),
        ],
    ),
    "added affinity without terms and weights": (
        """\
profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution: {}
        preferredDuringSchedulingIgnoredDuringExecution:
        - preference: {matchFields: [{key: metadata.name, operator: Exists}]}
        - weight: 101
""",
        [
            (
                "config.yaml:8: profiles[0].pluginConfig[0].args.addedAffinity."
                "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required "
                "value: must have at least one node selector term"
            ),
            (
                "config.yaml:10: profiles[0].pluginConfig[0].args.addedAffinity."
                "preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0]: "
                "'Exists' is not an operator for fields"
            ),
            (
                "config.yaml:10: profiles[0].pluginConfig[0].args.addedAffinity."
                "preferredDuringSchedulingIgnoredDuringExecution[0].weight: Required value: must "
                "be in the range 1-100"
            ),
            (
                "config.yaml:11: profiles[0].pluginConfig[0].args.addedAffinity."
                "preferredDuringSchedulingIgnoredDuringExecution[1].weight: Invalid value: 101: "
                "must be in the range 1-100"
            ),
        ],
    ),
    "added affinity that picks nothing": (
        """\
profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - {key: zone, operator: Inn, values: [a]}
""",
        [
            (
                "config.yaml:11: profiles[0].pluginConfig[0].args.addedAffinity."
                "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
                "matchExpressions[0]: 'Inn' is not an operator"
            )
        ],
    ),
    "weights out of range": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
        resources:
        - {name: cpu, weight: 101}
        - {weight: -1}
""",
        [
            (
                "config.yaml:10: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: Invalid "
                "value: 101: resource weight of cpu not in valid range (0, 100]"
            ),
            (
                "config.yaml:11: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.resources[1].name: Required "
                "value"
            ),
            (
                "config.yaml:11: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.resources[1].weight: Invalid "
                "value: -1: resource weight of  not in valid range (0, 100]"
            ),
        ],
    ),
    "shape where none belongs": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
        requestedToCapacityRatio: {shape: []}
""",
        [
            (
                "config.yaml:9: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio: "
                "Forbidden: must be nil when type is not RequestedToCapacityRatio"
            )
        ],
    ),
    "no shape where one belongs": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
""",
        [
            (
                "config.yaml:7: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio: "
                "Required value: must be specified when type is RequestedToCapacityRatio"
            ),
        ],
    ),
    "empty shape": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        requestedToCapacityRatio: {}
""",
        [
            (
                "config.yaml:9: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape:"
                " Required value: at least one point must be specified"
            ),
        ],
    ),
    "crooked shape": (
        """\
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        requestedToCapacityRatio:
          shape:
          - {utilization: 50, score: 11}
          - {utilization: 50, score: 5}
          - {utilization: 101, score: -1}
""",
        [
            (
                "config.yaml:11: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape["
                "0].score: Invalid value: 11: not in valid range [0, 10]"
            ),
            (
                "config.yaml:12: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape["
                "1].utilization: Invalid value: 50: values must be sorted in increasing order"
            ),
            (
                "config.yaml:13: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape["
                "2].utilization: Invalid value: 101: not in valid range [0, 100]"
            ),
            (
                "config.yaml:13: "
                "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape["
                "2].score: Invalid value: -1: not in valid range [0, 10]"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("text", "messages"), CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_and_where(tmp_path, text, messages):
    assert messages_of(tmp_path, HEADER + text) == messages
