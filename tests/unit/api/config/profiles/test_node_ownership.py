"""`nodeOwnership` in SchedulerExtras: what it becomes, and how it can be wrong."""

import pytest

from k8s_scheduler.api.config.profiles.node_ownership import NODE_OWNERSHIP
from k8s_scheduler.api.config.summary import summary
from tests.unit.api.config.config_cases import EXTRAS, HEADER, load_text, messages_of

SELECTOR = "{nodeSelectorTerms: [{matchExpressions: [{key: own, operator: In, values: [us]}]}]}"


def with_ownership(text):
    return f"{HEADER}---\n{EXTRAS}nodeOwnership:\n  nodeSelector: {text}\n"


def test_it_is_the_first_filter_of_every_profile(tmp_path):
    two = "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {multiPoint: {disabled: "
    two += "[{name: NodeAffinity}]}}}]\n"
    file = with_ownership(SELECTOR).replace("---\n", f"{two}---\n", 1)
    loaded = load_text(tmp_path, file)
    assert [p.scheduler_name for p in loaded.profiles] == ["a", "b"]
    for profile in loaded.profiles:
        for point in ("preFilter", "filter"):
            assert profile.points[point][0].name == NODE_OWNERSHIP
        assert profile.plugin_args[NODE_OWNERSHIP] == {
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [{"key": "own", "operator": "In", "values": ["us"]}],
                        "matchFields": [],
                    }
                ]
            }
        }
    assert 'own nodes: {"nodeSelectorTerms"' in summary(loaded)


@pytest.mark.parametrize("text", [HEADER, f"{HEADER}---\n{EXTRAS}nodeOwnership: {{}}\n"])
def test_without_a_selector_there_is_no_such_plugin(tmp_path, text):
    (profile,) = load_text(tmp_path, text).profiles
    assert NODE_OWNERSHIP not in profile.plugin_args
    assert all(use.name != NODE_OWNERSHIP for uses in profile.points.values() for use in uses)


NO_NODE = "Required value: a term without matchExpressions and matchFields picks no node"
NO_FIELD = 'Unsupported value: "name": supported values: "metadata.name"'
TERMS = "config.yaml:7: nodeOwnership.nodeSelector.nodeSelectorTerms"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", f"{TERMS}: Required value: must have at least one node selector term"),
        (
            "{nodeSelectorTerms: [{}]}",
            f"{TERMS}[0]: {NO_NODE}",
        ),
        (
            "{nodeSelectorTerms: [{matchExpressions: [{key: own, operator: in, values: [a]}]}]}",
            f"{TERMS}[0].matchExpressions[0]: 'in' is not an operator",
        ),
        (
            "{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: Exists}]}]}",
            f"{TERMS}[0].matchFields[0]: 'Exists' is not an operator for fields",
        ),
        (
            "{nodeSelectorTerms: [{matchFields: [{key: name, operator: NotIn, values: [a]}]}]}",
            f"{TERMS}[0].matchFields[0].key: {NO_FIELD}",
        ),
        (
            "{matchLabels: {own: us}}",
            'config.yaml:7: nodeOwnership.nodeSelector.matchLabels: unknown field "matchLabels"',
        ),
    ],
)
def test_what_is_wrong_is_told_with_path_and_line(tmp_path, text, message):
    assert message in messages_of(tmp_path, with_ownership(text))


def test_a_profile_can_neither_name_it_nor_leave_it_out(tmp_path):
    for what in ("enabled", "disabled"):
        plugins = f"profiles: [{{plugins: {{filter: {{{what}: [{{name: {NODE_OWNERSHIP}}}]}}}}}}]\n"
        (message,) = messages_of(tmp_path, HEADER + plugins)
        assert NODE_OWNERSHIP in message
