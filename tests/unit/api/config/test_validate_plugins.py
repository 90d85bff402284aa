"""Plugins that do not exist, do not belong there or do not work yet."""

import pytest

from tests.unit.api.config.config_cases import HEADER, messages_of

CASES = {
    "plugin that does not exist": (
        """\
profiles:
- plugins:
    filter:
      enabled:
      - name: NodeNames
""",
        [
            (
                "config.yaml:7: profiles[0].plugins.filter.enabled[0].name: FilterPlugin "
                '"NodeNames" does not exist; did you mean "NodeName"?'
            )
        ],
    ),
    "plugin that exists nowhere near": (
        """\
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: Coscheduling
""",
        [
            (
                "config.yaml:7: profiles[0].plugins.multiPoint.enabled[0].name: plugin "
                '"Coscheduling" does not exist; did you mean "GangScheduling"?'
            )
        ],
    ),
    "plugin without name": (
        """\
profiles:
- plugins:
    score:
      enabled:
      - weight: 2
""",
        ["config.yaml:7: profiles[0].plugins.score.enabled[0].name: Required value"],
    ),
    "plugin at a point it lacks": (
        """\
profiles:
- plugins:
    score:
      enabled:
      - name: NodeName
""",
        [
            (
                'config.yaml:7: profiles[0].plugins.score.enabled[0].name: plugin "NodeName" '
                "does not extend ScorePlugin plugin; it implements filter, preFilter"
            )
        ],
    ),
    "plugin behind a gate in multiPoint": (
        """\
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: PodGroupPodsCount
        weight: 5
""",
        [
            (
                "config.yaml:7: profiles[0].plugins.multiPoint.enabled[0].name: plugin "
                '"PodGroupPodsCount" is not supported yet'
            )
        ],
    ),
    "plugin behind a gate": (
        """\
profiles:
- plugins:
    permit:
      enabled:
      - name: GangScheduling
""",
        [
            (
                "config.yaml:7: profiles[0].plugins.permit.enabled[0].name: plugin "
                '"GangScheduling" is not supported yet'
            )
        ],
    ),
    "plugin that was removed": (
        """\
profiles:
- plugins:
    filter:
      enabled:
      - name: EBSLimits
""",
        [
            (
                'config.yaml:7: profiles[0].plugins.filter.enabled[0].name: plugin "EBSLimits" '
                "was removed from kube-scheduler; NodeVolumeLimits does its work"
            )
        ],
    ),
    "plugin twice at a point": (
        """\
profiles:
- plugins:
    filter:
      enabled:
      - name: NodeName
      - name: NodeName
""",
        [
            (
                'config.yaml:8: profiles[0].plugins.filter.enabled[1].name: plugin "NodeName" '
                'already registered as "FilterPlugin"'
            )
        ],
    ),
    "plugin twice in multiPoint": (
        """\
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: NodeName
      - name: NodeName
""",
        [
            (
                "config.yaml:8: profiles[0].plugins.multiPoint.enabled[1].name: plugin "
                '"NodeName" already registered as "PreFilterPlugin"'
            )
        ],
    ),
    "typo in disabled": (
        """\
profiles:
- plugins:
    score:
      disabled:
      - name: TaintTolerations
""",
        [
            (
                "config.yaml:7: profiles[0].plugins.score.disabled[0].name: plugin "
                '"TaintTolerations" does not exist; did you mean "TaintToleration"?'
            )
        ],
    ),
    "no queue sort plugin": (
        """\
profiles:
- plugins:
    queueSort:
      disabled:
      - name: '*'
""",
        [
            (
                "config.yaml:5: profiles[0].plugins.queueSort: only one queue sort plugin "
                'required for profile with scheduler name "default-scheduler", but got 0'
            )
        ],
    ),
    "no bind plugin": (
        """\
profiles:
- schedulerName: b
  plugins:
    multiPoint:
      disabled:
      - name: DefaultBinder
""",
        [
            (
                "config.yaml:5: profiles[0].plugins.bind: at least one bind plugin is needed for "
                'profile with scheduler name "b"'
            )
        ],
    ),
    "half a plugin": (
        """\
profiles:
- plugins:
    preFilter:
      disabled: [{name: NodePorts}, {name: VolumeBinding}, {name: NodeName}]
""",
        [
            (
                'config.yaml:5: profiles[0].plugins.preFilter: plugin "NodePorts" is enabled at '
                "filter and needs what it finds at preFilter: without it every pod would fail; "
                "enable it there too, or disable it at filter"
            ),
            (
                'config.yaml:5: profiles[0].plugins.preFilter: plugin "VolumeBinding" is enabled '
                "at filter, reserve, preScore, score, preBind and needs what it finds at "
                "preFilter: without it every pod would fail; enable it there too, or disable it "
                "at filter, reserve, preScore, score, preBind"
            ),
        ],
    ),
    "scores without their first half": (
        """\
profiles:
- plugins:
    preScore:
      disabled: [{name: '*'}]
      enabled: [{name: InterPodAffinity}, {name: PodTopologySpread}]
""",
        [
            (
                'config.yaml:5: profiles[0].plugins.preScore: plugin "TaintToleration" is enabled '
                "at score and needs what it finds at preScore: without it every pod would fail; "
                "enable it there too, or disable it at score"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("text", "messages"), CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_and_where(tmp_path, text, messages):
    assert messages_of(tmp_path, HEADER + text) == messages
