"""Arguments of the plugins about other pods, volumes and devices that are wrong."""

import pytest

from tests.unit.api.config.config_cases import HEADER, messages_of

CASES = {
    "spread with a list nobody reads": (
        """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.defaultingType: Invalid value: "
                '"System": when .defaultConstraints are not empty; set it to "List"'
            ),
        ],
    ),
    "spread by a way that does not exist": (
        """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args: {defaultingType: Lists}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.defaultingType: Unsupported "
                'value: "Lists": supported values: "List", "System"; did you mean "List"?'
            ),
        ],
    ),
    "spread without skew, key and action": (
        """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {}
""",
        [
            (
                "config.yaml:9: profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: "
                "Invalid value: 0: not in valid range (0, inf)"
            ),
            (
                "config.yaml:9: "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].topologyKey: Required "
                "value: can not be empty"
            ),
            (
                "config.yaml:9: "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: "
                "Required value: can not be empty"
            ),
        ],
    ),
    "spread with values out of range": (
        """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - maxSkew: -1
        topologyKey: a zone
        whenUnsatisfiable: DoNotScheduled
        minDomains: 0
        nodeAffinityPolicy: Honour
        nodeTaintsPolicy: ''
""",
        [
            (
                "config.yaml:9: profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: "
                "Invalid value: -1: not in valid range (0, inf)"
            ),
            (
                "config.yaml:10: "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].topologyKey: Invalid "
                'value: "a zone": must be a qualified name: up to 63 letters, digits, "-", "_" '
                'or ".", with a letter or digit at both ends, after an optional DNS name and "/"'
            ),
            (
                "config.yaml:11: "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: "
                'Unsupported value: "DoNotScheduled": supported values: "DoNotSchedule", '
                '"ScheduleAnyway"; did you mean "DoNotSchedule"?'
            ),
            (
                "config.yaml:12: "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].minDomains: Invalid "
                "value: 0: must be greater than 0"
            ),
            (
                "config.yaml:13: "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].nodeAffinityPolicy: "
                'Unsupported value: "Honour": supported values: "Honor", "Ignore"; did you mean '
                '"Honor"?'
            ),
            (
                "config.yaml:14: "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].nodeTaintsPolicy: "
                'Unsupported value: "": supported values: "Honor", "Ignore"'
            ),
        ],
    ),
    "spread with a selector": (
        """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}
""",
        [
            (
                "config.yaml:9: "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].labelSelector: "
                "Forbidden: constraint must not define a selector, as they deduced for each pod"
            ),
        ],
    ),
    "spread twice the same": (
        """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
      - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
""",
        [
            (
                "config.yaml:11: profiles[0].pluginConfig[0].args.defaultConstraints[2]: "
                'Duplicate value: "{zone, DoNotSchedule}": also at '
                "profiles[0].pluginConfig[0].args.defaultConstraints[0]"
            ),
        ],
    ),
    "spread with an unknown field": (
        """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkews: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
""",
        [
            (
                "config.yaml:9: profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkews: "
                'unknown field "maxSkews"; did you mean "maxSkew"?'
            ),
            (
                "config.yaml:9: profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: "
                "Invalid value: 0: not in valid range (0, inf)"
            ),
        ],
    ),
    "spread that is no list": (
        """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args: {defaultConstraints: {maxSkew: 1}}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.defaultConstraints: must be a "
                "list, not a mapping"
            ),
        ],
    ),
    "affinity weight out of range": (
        """\
profiles:
- pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 101}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid "
                "value: 101: not in valid range [0, 100]"
            ),
        ],
    ),
    "affinity weight below zero": (
        """\
profiles:
- pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: -1}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid "
                "value: -1: not in valid range [0, 100]"
            ),
        ],
    ),
    "affinity with a misspelt argument": (
        """\
profiles:
- pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeigth: 1}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.hardPodAffinityWeigth: unknown "
                'field "hardPodAffinityWeigth"; did you mean "hardPodAffinityWeight"?'
            ),
        ],
    ),
    "affinity flag that is no flag": (
        """\
profiles:
- pluginConfig:
  - name: InterPodAffinity
    args: {ignorePreferredTermsOfExistingPods: maybe}
""",
        [
            (
                "config.yaml:6: "
                "profiles[0].pluginConfig[0].args.ignorePreferredTermsOfExistingPods: must be "
                'true or false, not the string "maybe"'
            ),
        ],
    ),
    "volumes with a negative timeout": (
        """\
profiles:
- pluginConfig:
  - name: VolumeBinding
    args: {bindTimeoutSeconds: -1}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.bindTimeoutSeconds: Invalid "
                "value: -1: invalid BindTimeoutSeconds, should not be a negative value"
            ),
        ],
    ),
    "volumes with a timeout as text": (
        """\
profiles:
- pluginConfig:
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 60s}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.bindTimeoutSeconds: must be an "
                'integer, not the string "60s"'
            ),
        ],
    ),
    "volumes with a crooked shape": (
        """\
profiles:
- pluginConfig:
  - name: VolumeBinding
    args:
      shape:
      - {utilization: 100, score: 0}
      - {utilization: 0, score: 11}
""",
        [
            (
                "config.yaml:9: profiles[0].pluginConfig[0].args.shape[1].score: Invalid value: "
                "11: not in valid range [0, 10]"
            ),
            (
                "config.yaml:9: profiles[0].pluginConfig[0].args.shape[1].utilization: Invalid "
                "value: 0: values must be sorted in increasing order"
            ),
        ],
    ),
    "preemption with a percentage out of range": (
        """\
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 101}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: "
                "Invalid value: 101: not in valid range [0, 100]"
            ),
        ],
    ),
    "preemption with a negative count": (
        """\
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesAbsolute: -1}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.minCandidateNodesAbsolute: "
                "Invalid value: -1: not in valid range [0, inf)"
            ),
        ],
    ),
    "preemption on no node at all": (
        """\
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: "
                "Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute"
            ),
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.minCandidateNodesAbsolute: "
                "Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage"
            ),
        ],
    ),
    "preemption with a fraction": (
        """\
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 0.5}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: "
                "must be an integer, not the number 0.5"
            ),
        ],
    ),
    "devices with negative time": (
        """\
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {filterTimeout: -1s}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.filterTimeout: Invalid value: "
                '"-1s": must be zero or positive'
            ),
        ],
    ),
    "devices with too little time": (
        """\
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {bindingTimeout: 999ms}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.bindingTimeout: Invalid value: "
                '"999ms": must be at least 1 second'
            ),
        ],
    ),
    "devices with a number for a time": (
        """\
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {filterTimeout: 10}
""",
        [
            (
                "config.yaml:6: profiles[0].pluginConfig[0].args.filterTimeout: must be a "
                'duration like "15s", not the number 10'
            ),
        ],
    ),
    "devices with a time nobody understands": (
        """\
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {bindingTimeout: 10 minutes}
""",
        [
            (
                'config.yaml:6: profiles[0].pluginConfig[0].args.bindingTimeout: "10 minutes" is '
                'not a duration; write it like "15s", "5m0s" or "1h"'
            ),
        ],
    ),
}


@pytest.mark.parametrize(("text", "messages"), CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_and_where(tmp_path, text, messages):
    assert messages_of(tmp_path, HEADER + text) == messages
