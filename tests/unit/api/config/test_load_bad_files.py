"""Files that are no configuration at all: one clear sentence."""

import pytest

from tests.unit.api.config.config_cases import EXTRAS, HEADER, messages_of

CASES = {
    "nothing in it": (
        "",
        [
            (
                'config.yaml: is empty; it must say "apiVersion: kubescheduler.config.k8s.io/v1" '
                'and "kind: KubeSchedulerConfiguration"'
            )
        ],
    ),
    "only comments": (
        """\
# soon
---
""",
        [
            (
                'config.yaml: is empty; it must say "apiVersion: kubescheduler.config.k8s.io/v1" '
                'and "kind: KubeSchedulerConfiguration"'
            )
        ],
    ),
    "not YAML": (
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [
""",
        [("config.yaml:4: is not valid YAML: expected the node content, but found '<stream end>'")],
    ),
    "indented with a tab": (
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
	leaderElect: true
""",
        [
            (
                "config.yaml:4: is not valid YAML: a tab where YAML allows only spaces; indent "
                "with spaces"
            )
        ],
    ),
    "a list": (
        "- a\n",
        [
            (
                'config.yaml:1: must be a mapping that says "apiVersion: '
                'kubescheduler.config.k8s.io/v1" and "kind: KubeSchedulerConfiguration"'
            )
        ],
    ),
    "a word": (
        "hello\n",
        [
            (
                'config.yaml:1: must be a mapping that says "apiVersion: '
                'kubescheduler.config.k8s.io/v1" and "kind: KubeSchedulerConfiguration"'
            )
        ],
    ),
    "two documents": (
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
""",
        [
            (
                "config.yaml:4: holds 2 documents; a file holds one KubeSchedulerConfiguration and "
                "at most one SchedulerExtras"
            )
        ],
    ),
    "extras twice": (
        f"{HEADER}---\n{EXTRAS}---\n{EXTRAS}",
        [
            (
                "config.yaml:7: holds 3 documents; a file holds one KubeSchedulerConfiguration and "
                "at most one SchedulerExtras"
            )
        ],
    ),
    "extras alone": (
        EXTRAS,
        [
            (
                "config.yaml: holds no KubeSchedulerConfiguration beside its SchedulerExtras; one "
                'document must say "apiVersion: kubescheduler.config.k8s.io/v1" and "kind: '
                'KubeSchedulerConfiguration"'
            )
        ],
    ),
    "more reasons than anybody reads": (
        (
            f"{HEADER}---\napiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"
            "reasons: {maxPerSecond: 1001}\n"
        ),
        [
            "config.yaml:6: reasons.maxPerSecond: Invalid value: 1001: must be between 0 and 1000",
        ],
    ),
    "extras of another version, and wrong on both sides": (
        (
            f"kind: SchedulerExtras\nbatch: {{maxPods: 0, maxMilliseconds: 21, maxPod: 3}}\n---\n"
            f"{HEADER}parallelism: 0\n"
        ),
        [
            'config.yaml:1: apiVersion: Required value: must be "k8s-scheduler.io/v1alpha1"',
            'config.yaml:2: batch.maxPod: unknown field "maxPod"',
            "config.yaml:2: batch.maxPods: Invalid value: 0: must be between 1 and 10000",
            "config.yaml:2: batch.maxMilliseconds: Invalid value: 21: must be between 1 and 20",
            (
                "config.yaml:6: parallelism: Invalid value: 0: should be an integer value greater "
                "than zero"
            ),
        ],
    ),
    "a limit on victims that is none": (
        (f"{EXTRAS}preemption: {{maxVictimsPerMinute: -1, maxVictims: 3}}\n---\n{HEADER}"),
        [
            'config.yaml:3: preemption.maxVictims: unknown field "maxVictims"',
            (
                "config.yaml:3: preemption.maxVictimsPerMinute: Invalid value: -1: must be between "
                "0 and 1000000"
            ),
        ],
    ),
    "rivals that are refused everywhere": (
        f"{EXTRAS}rivals: {{action: Refuse}}\n---\n{HEADER}",
        [
            (
                "config.yaml:3: rivals.namespaces: Required value: with action Refuse, because who "
                "may write Leases in a namespace could keep this scheduler from leading"
            ),
        ],
    ),
    "rivals that are treated in another way": (
        f'{EXTRAS}rivals: {{action: warn, namespaces: [a, A, "", a]}}\n---\n{HEADER}',
        [
            (
                'config.yaml:3: rivals.action: Unsupported value: "warn": supported values: '
                '"Ignore", "Refuse", "Warn"; did you mean "Warn"?'
            ),
            (
                'config.yaml:3: rivals.namespaces[1]: Invalid value: "A": must be the name of a '
                "namespace"
            ),
            (
                'config.yaml:3: rivals.namespaces[2]: Invalid value: "": must be the name of a '
                "namespace"
            ),
            (
                'config.yaml:3: rivals.namespaces[3]: Duplicate value: "a": also at '
                "rivals.namespaces[0]"
            ),
        ],
    ),
    "rivals without an action": (
        f'{EXTRAS}rivals: {{action: ""}}\n---\n{HEADER}',
        ["config.yaml:3: rivals.action: Required value"],
    ),
    "rivals in too many namespaces": (
        f"{EXTRAS}rivals: {{namespaces: [{', '.join(f'n{i}' for i in range(33))}]}}\n---\n{HEADER}",
        ["config.yaml:3: rivals.namespaces: Too many: 33: must have at most 32 items"],
    ),
    "no apiVersion and no kind": (
        "parallelism: 4\n",
        [
            'config.yaml:1: apiVersion: Required value: must be "kubescheduler.config.k8s.io/v1"',
            'config.yaml:1: kind: Required value: must be "KubeSchedulerConfiguration"',
        ],
    ),
    "an old version": (
        """\
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
parallelism: 0
""",
        [
            (
                "config.yaml:1: apiVersion: Invalid value: "
                '"kubescheduler.config.k8s.io/v1beta3": must be "kubescheduler.config.k8s.io/v1"'
            ),
            (
                "config.yaml:3: parallelism: Invalid value: 0: should be an integer value "
                "greater than zero"
            ),
        ],
    ),
    "another kind": (
        """\
apiVersion: v1
kind: ConfigMap
data: {}
""",
        [
            (
                'config.yaml:1: apiVersion: Invalid value: "v1": must be '
                '"kubescheduler.config.k8s.io/v1"'
            ),
            (
                'config.yaml:2: kind: Invalid value: "ConfigMap": must be '
                '"KubeSchedulerConfiguration"'
            ),
        ],
    ),
    "misspelt kind": (
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfig
""",
        [
            (
                'config.yaml:2: kind: Invalid value: "KubeSchedulerConfig": must be '
                '"KubeSchedulerConfiguration"'
            )
        ],
    ),
    "apiVersion that is a number": (
        """\
apiVersion: 1
kind: KubeSchedulerConfiguration
""",
        [
            (
                'config.yaml:1: apiVersion: Invalid value: "1": must be '
                '"kubescheduler.config.k8s.io/v1"'
            )
        ],
    ),
}


@pytest.mark.parametrize(("text", "messages"), CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_and_where(tmp_path, text, messages):
    assert messages_of(tmp_path, text) == messages
