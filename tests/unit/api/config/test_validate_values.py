"""Values of the right type that break a rule."""

import pytest

from tests.unit.api.config.config_cases import HEADER, messages_of

CASES = {
    "parallelism of zero": (
        "parallelism: 0\n",
        [
            (
                "config.yaml:3: parallelism: Invalid value: 0: should be an integer value "
                "greater than zero"
            )
        ],
    ),
    "negative lease": (
        "leaderElection: {leaseDuration: -15s}\n",
        [
            (
                'config.yaml:3: leaderElection.leaseDuration: Invalid value: "-15s": must be '
                "greater than zero"
            )
        ],
    ),
    "lease no longer than the deadline": (
        "leaderElection: {leaseDuration: 10s}\n",
        [
            (
                'config.yaml:3: leaderElection.leaseDuration: Invalid value: "10s": must be '
                "greater than `RenewDeadline` (10s)"
            )
        ],
    ),
    "deadline too close to the retries": (
        """\
leaderElection:
  renewDeadline: 2400ms
""",
        [
            (
                'config.yaml:4: leaderElection.renewDeadline: Invalid value: "2.4s": must be '
                "greater than retryPeriod*JitterFactor (2s * 1.2)"
            )
        ],
    ),
    "lock of another kind": (
        "leaderElection: {resourceLock: endpoints}\n",
        [
            (
                'config.yaml:3: leaderElection.resourceLock: Invalid value: "endpoints": '
                'resourceLock value must be "leases"'
            )
        ],
    ),
    "names that no Lease and no namespace can have": (
        "leaderElection: {resourceName: a/../b, resourceNamespace: kube.system}\n",
        [
            (
                'config.yaml:3: leaderElection.resourceName: Invalid value: "a/../b": cannot be '
                "the name of a Lease"
            ),
            (
                "config.yaml:3: leaderElection.resourceNamespace: Invalid value: "
                '"kube.system": cannot be a namespace'
            ),
        ],
    ),
    "negative burst": (
        "clientConnection: {burst: -1}\n",
        ["config.yaml:3: clientConnection.burst: Invalid value: -1: must be non-negative"],
    ),
    "percentage over 100": (
        "percentageOfNodesToScore: 101\n",
        [
            (
                "config.yaml:3: percentageOfNodesToScore: Invalid value: 101: not in valid range "
                "[0-100]"
            )
        ],
    ),
    "percentage below 0 in a profile": (
        """\
profiles:
- percentageOfNodesToScore: -1
""",
        [
            (
                "config.yaml:4: profiles[0].percentageOfNodesToScore: Invalid value: -1: not in "
                "valid range [0-100]"
            )
        ],
    ),
    "no first backoff": (
        "podInitialBackoffSeconds: 0\n",
        ["config.yaml:3: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
    ),
    "backoff that shrinks": (
        "podInitialBackoffSeconds: 20\n",
        [
            (
                "config.yaml:1: podMaxBackoffSeconds: Invalid value: 10: must be greater than or "
                "equal to PodInitialBackoffSeconds (20)"
            )
        ],
    ),
    "a lease longer than a Lease can say": (
        "leaderElection: {leaseDuration: 600000h}\n",
        [
            (
                'config.yaml:3: leaderElection.leaseDuration: Invalid value: "600000h0m0s": must '
                "be at most 596523h14m7s"
            )
        ],
    ),
    "two profiles of one name": (
        """\
profiles:
- schedulerName: a
- schedulerName: b
- schedulerName: a
""",
        [
            (
                'config.yaml:6: profiles[2].schedulerName: Duplicate value: "a": also at '
                "profiles[0].schedulerName"
            )
        ],
    ),
    "two profiles, one without name": (
        """\
profiles:
- schedulerName: a
- {}
""",
        ["config.yaml:5: profiles[1].schedulerName: Required value: every profile needs a name"],
    ),
    "one profile with an empty name": (
        """\
profiles:
- schedulerName: ''
""",
        ["config.yaml:4: profiles[0].schedulerName: Required value"],
    ),
    "profiles that sort differently": (
        """\
profiles:
- schedulerName: a
- schedulerName: b
  plugins:
    queueSort:
      enabled: [{name: PrioritySort}]
""",
        [
            (
                'config.yaml:7: profiles[1].plugins.queueSort: Invalid value: ["PrioritySort"]: '
                "must be the same for all profiles"
            )
        ],
    ),
}


@pytest.mark.parametrize(("text", "messages"), CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_and_where(tmp_path, text, messages):
    assert messages_of(tmp_path, HEADER + text) == messages
