"""Good files, defaults, flags and warnings."""

from pathlib import Path

import pytest

from k8s_scheduler.api.config.extras import BatchSettings, Reasons, SchedulerExtras
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.load import (
    FlagOverride,
    default_configuration,
    load_configuration,
)
from k8s_scheduler.api.config.types import ClientConnection, LeaderElection
from tests.unit.api.config.config_cases import EXTRAS, HEADER, KNOWN, load_text, messages_of

LEASE_FLAG = FlagOverride(
    "--leader-elect-lease-duration", ("leaderElection", "leaseDuration"), 30.0
)


class TestDefaults:
    """Without a file, and for what a file leaves out."""

    def test_no_file_means_one_default_profile(self):
        configuration = default_configuration(KNOWN)
        assert [p.scheduler_name for p in configuration.profiles] == ["default-scheduler"]
        assert configuration.warnings == ()
        assert configuration.source == ""

    def test_empty_configuration_equals_no_file(self, tmp_path):
        loaded = load_text(tmp_path, HEADER)
        default = default_configuration(KNOWN)
        assert loaded.settings == default.settings
        assert loaded.profiles == default.profiles

    def test_defaults_are_those_of_kube_scheduler(self):
        settings = default_configuration(KNOWN).settings
        assert settings.parallelism == 16
        assert settings.leader_election == LeaderElection(
            leader_elect=True,
            lease_duration_seconds=15.0,
            renew_deadline_seconds=10.0,
            retry_period_seconds=2.0,
            resource_lock="leases",
            resource_name="kube-scheduler",
            resource_namespace="kube-system",
        )
        assert (settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds) == (1, 10)
        assert settings.percentage_of_nodes_to_score == 0
        assert settings.delay_cache_until_active is False

    def test_requests_are_not_limited_unless_asked(self, tmp_path):
        assert default_configuration(KNOWN).settings.client_connection == ClientConnection()
        limited = load_text(tmp_path, HEADER + "clientConnection: {qps: 20}\n")
        assert limited.settings.client_connection == ClientConnection(qps=20.0, burst=100)

    def test_null_and_empty_values_stand_for_the_default(self, tmp_path):
        text = (
            "parallelism: null\nleaderElection: {leaseDuration: 0s, resourceName: ''}\n"
            "clientConnection: {qps: 5, burst: 0}\nprofiles: []\n"
        )
        settings = load_text(tmp_path, HEADER + text).settings
        assert settings.parallelism == 16
        assert settings.leader_election == LeaderElection()
        assert settings.client_connection.burst == 100
        assert settings.profiles[0].scheduler_name == "default-scheduler"

    def test_a_single_profile_may_go_without_a_name(self, tmp_path):
        configuration = load_text(tmp_path, HEADER + "profiles:\n- {}\n")
        assert configuration.profiles[0].scheduler_name == "default-scheduler"


class TestFiles:
    """What a good file says is what comes out."""

    def test_every_setting_arrives(self, tmp_path):
        text = (
            "leaderElection:\n  leaderElect: false\n  leaseDuration: 1m0s\n"
            "  renewDeadline: 40s\n  retryPeriod: 500ms\n  resourceName: ours\n"
            "  resourceNamespace: ns\n"
            "clientConnection: {kubeconfig: /etc/k, qps: 1e2, burst: 7.0}\n"
            "podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 60\n"
            "percentageOfNodesToScore: 100\ndelayCacheUntilActive: true\n"
            "profiles:\n- schedulerName: a\n- schedulerName: b\n"
        )
        configuration = load_text(tmp_path, HEADER + text)
        settings = configuration.settings
        assert settings.leader_election == LeaderElection(
            leader_elect=False,
            lease_duration_seconds=60.0,
            renew_deadline_seconds=40.0,
            retry_period_seconds=0.5,
            resource_name="ours",
            resource_namespace="ns",
        )
        assert settings.client_connection == ClientConnection("/etc/k", qps=100.0, burst=7)
        assert (settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds) == (2, 60)
        assert settings.delay_cache_until_active is True
        assert [p.scheduler_name for p in configuration.profiles] == ["a", "b"]
        assert configuration.source == str(tmp_path / "config.yaml")

    def test_lease_times_are_free_without_election(self, tmp_path):
        text = "leaderElection: {leaderElect: false, leaseDuration: 1s, resourceLock: x}\n"
        assert load_text(tmp_path, HEADER + text).settings.leader_election.resource_lock == "x"

    def test_json_is_a_configuration_too(self, tmp_path):
        text = (
            '{\n\t"apiVersion": "kubescheduler.config.k8s.io/v1",\n'
            '\t"kind": "KubeSchedulerConfiguration",\n\t"podMaxBackoffSeconds": 20\n}\n'
        )
        assert load_text(tmp_path, text).settings.pod_max_backoff_seconds == 20

    def test_missing_file_is_named(self, tmp_path):
        with pytest.raises(ConfigurationError) as caught:
            load_configuration(tmp_path / "none.yaml", KNOWN)
        assert str(caught.value) == (
            f"{tmp_path}/none.yaml: cannot be read: No such file or directory"
        )

    def test_folder_in_place_of_the_file_is_named(self, tmp_path):
        with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
            load_configuration(tmp_path, KNOWN)

    def test_bytes_that_are_no_text_are_named(self, tmp_path):
        path = tmp_path / "config.yaml"
        path.write_bytes(b"a: \xff\n")
        with pytest.raises(ConfigurationError, match="is not text in UTF-8: byte 3 is not"):
            load_configuration(path, KNOWN)

    def test_a_file_without_an_end_is_not_read_to_it(self):
        expected = "/dev/zero: is longer than 4194304 bytes; is this the right file"
        with pytest.raises(ConfigurationError, match=expected):
            load_configuration(Path("/dev/zero"), KNOWN)

    def test_line_ends_of_other_systems_are_line_ends(self, tmp_path):
        path = tmp_path / "config.yaml"
        path.write_bytes(b"bogus: 1\r\nparallelism: 0\r\n")
        with pytest.raises(ConfigurationError) as caught:
            load_configuration(path, KNOWN)
        assert {error.line for error in caught.value.errors} == {1, 2}

    def test_all_errors_come_at_once_in_the_order_of_lines(self, tmp_path):
        text = (
            "bogus: 1\nparallelism: 0\n"
            "profiles:\n- schedulerName: 3\n  percentageOfNodesToScore: 101\n"
        )
        assert messages_of(tmp_path, HEADER + text) == [
            'config.yaml:3: bogus: unknown field "bogus"',
            (
                "config.yaml:4: parallelism: Invalid value: 0: should be an integer value greater "
                "than zero"
            ),
            "config.yaml:6: profiles[0].schedulerName: must be a string, not the number 3",
            (
                "config.yaml:7: profiles[0].percentageOfNodesToScore: Invalid value: 101: not in "
                "valid range [0-100]"
            ),
        ]


class TestPercentages:
    """How many nodes are scored: a profile's own word, else the one for all."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("profiles:\n- schedulerName: a\n- schedulerName: b\n", [0, 0]),
            (
                """\
percentageOfNodesToScore: 30
profiles:
- schedulerName: a
- {schedulerName: b, percentageOfNodesToScore: 7}
- {schedulerName: c, percentageOfNodesToScore: 0}
- {schedulerName: d, percentageOfNodesToScore: null}
""",
                [30, 7, 0, 30],
            ),
            ("percentageOfNodesToScore: 100\n", [100]),
        ],
        ids=["all nodes unless told", "the profile wins, 0 too", "everything"],
    )
    def test_resolves(self, tmp_path, text, expected):
        loaded = load_text(tmp_path, HEADER + text)
        assert [p.percentage_of_nodes_to_score for p in loaded.profiles] == expected


class TestFlags:
    """A flag replaces what the file says, and errors are reported under its name."""

    def test_flag_wins_over_the_file(self, tmp_path):
        text = HEADER + "leaderElection: {leaseDuration: 20s, renewDeadline: 12s}\n"
        election = load_text(tmp_path, text, overrides=[LEASE_FLAG]).settings.leader_election
        assert election.lease_duration_seconds == 30.0
        assert election.renew_deadline_seconds == 12.0

    def test_error_made_by_a_flag_names_the_flag(self, tmp_path):
        short = FlagOverride(LEASE_FLAG.flag, LEASE_FLAG.path, 5.0)
        message = 'Invalid value: "5s": must be greater than `RenewDeadline` (10s)'
        expected = [f"--leader-elect-lease-duration: {message}"]
        assert messages_of(tmp_path, HEADER, overrides=[short]) == expected
        with pytest.raises(ConfigurationError) as caught:
            default_configuration(KNOWN, overrides=[short])
        assert str(caught.value).splitlines() == expected

    def test_a_time_that_a_flag_made_too_short_for_another_is_the_flags_error(self, tmp_path):
        deadline = FlagOverride(
            "--leader-elect-renew-deadline", ("leaderElection", "renewDeadline"), 8.0
        )
        text = HEADER + "leaderElection: {leaseDuration: 5s, renewDeadline: 3s}\n"
        assert messages_of(tmp_path, text, overrides=[deadline]) == [
            (
                "--leader-elect-renew-deadline: leaderElection.leaseDuration: Invalid value: "
                '"5s": must be greater than `RenewDeadline` (8s)'
            ),
        ]
        retry = FlagOverride("--leader-elect-retry-period", ("leaderElection", "retryPeriod"), 3.0)
        assert messages_of(tmp_path, text, overrides=[retry]) == [
            (
                "--leader-elect-retry-period: leaderElection.renewDeadline: Invalid value: "
                '"3s": must be greater than retryPeriod*JitterFactor (3s * 1.2)'
            ),
        ]

    def test_a_rule_that_the_file_breaks_by_itself_stays_the_files(self, tmp_path):
        text = HEADER + "leaderElection: {leaseDuration: 5s}\n"
        name = FlagOverride("--leader-elect-resource-name", ("leaderElection", "resourceName"), "x")
        assert messages_of(tmp_path, text, overrides=[name]) == [
            (
                'config.yaml:3: leaderElection.leaseDuration: Invalid value: "5s": '
                "must be greater than `RenewDeadline` (10s)"
            ),
        ]

    def test_zero_from_a_flag_is_no_default(self, tmp_path):
        zero = FlagOverride(LEASE_FLAG.flag, LEASE_FLAG.path, 0.0)
        assert messages_of(tmp_path, HEADER, overrides=[zero]) == [
            '--leader-elect-lease-duration: Invalid value: "0s": must be greater than zero'
        ]

    def test_fallback_flag_fills_in_only_what_is_unset(self, tmp_path):
        flag = FlagOverride(
            "--kubeconfig", ("clientConnection", "kubeconfig"), "/flag", only_if_unset=True
        )
        unset = load_text(tmp_path, HEADER, overrides=[flag])
        assert unset.settings.client_connection.kubeconfig == "/flag"
        text = HEADER + "clientConnection: {kubeconfig: /file}\n"
        given = load_text(tmp_path, text, overrides=[flag])
        assert given.settings.client_connection.kubeconfig == "/file"


class TestWarnings:
    """What has no effect here is said, with its line."""

    def test_each_setting_without_meaning_is_said(self, tmp_path):
        text = (
            "enableProfiling: false\nenableContentionProfiling: false\n"
            "clientConnection:\n  contentType: application/vnd.kubernetes.protobuf\n"
            "  acceptContentTypes: application/yaml\n  burst: 10\n"
        )
        file = f"{tmp_path}/config.yaml"
        assert load_text(tmp_path, HEADER + text).warnings == (
            f"{file}:3: enableProfiling: there is no Go runtime to profile; it has no effect",
            (
                f"{file}:4: enableContentionProfiling: there is no Go runtime to profile; "
                "it has no effect"
            ),
            f"{file}:6: clientConnection.contentType: this scheduler speaks JSON; it has no effect",
            (
                f"{file}:7: clientConnection.acceptContentTypes: this scheduler speaks JSON; "
                "it has no effect"
            ),
            (
                f"{file}:8: clientConnection.burst: there is no limit unless qps is set; it has no "
                "effect"
            ),
        )

    def test_more_workers_than_are_used_are_said(self, tmp_path):
        file = f"{tmp_path}/config.yaml"
        assert load_text(tmp_path, HEADER + "parallelism: 64\n").warnings == ()
        assert load_text(tmp_path, HEADER + "parallelism: 65\n").warnings == (
            f"{file}:3: parallelism: more than 64 are not used; it counts as 64",
        )

    def test_times_for_devices_are_said_to_have_no_effect_yet(self, tmp_path):
        text = (
            "profiles:\n- pluginConfig:\n  - name: DynamicResources\n"
            "    args: {filterTimeout: 10s, bindingTimeout: 1m}\n"
        )
        assert load_text(tmp_path, HEADER + text).warnings == (
            (
                f"{tmp_path}/config.yaml:6: profiles[0].pluginConfig[0].args.bindingTimeout: "
                "dynamic resources are not supported yet; it has no effect"
            ),
        )

    def test_what_is_acted_on_or_is_the_default_is_not_warned_about(self, tmp_path):
        text = (
            "clientConnection: {contentType: application/json, qps: 5, burst: 10}\n"
            "parallelism: 4\nenableProfiling: true\nenableContentionProfiling: true\n"
        )
        assert load_text(tmp_path, HEADER + text).warnings == ()


def test_extras_stand_beside_the_configuration_in_any_order(tmp_path):
    extras = f"{EXTRAS}batch: {{maxPods: 3, maxMilliseconds: 5}}\nreasons: {{maxPerSecond: 0}}\n"
    for text in (f"{HEADER}---\n{extras}", f"{extras}---\n{HEADER}"):
        loaded = load_text(tmp_path, text)
        assert loaded.extras.batch == BatchSettings(max_pods=3, max_milliseconds=5)
        assert loaded.extras.reasons == Reasons(max_per_second=0)
        assert loaded.profiles == default_configuration(KNOWN).profiles
    assert load_text(tmp_path, HEADER).extras == SchedulerExtras()
