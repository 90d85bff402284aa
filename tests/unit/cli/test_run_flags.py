"""`run` turns kube-scheduler's flags into RunOptions, and ends with the daemon's exit code."""

import os
import signal
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner

from k8s_scheduler import __version__
from k8s_scheduler.app.configuration import initial as starting
from k8s_scheduler.app.configuration.initial import Start
from k8s_scheduler.app.configuration.interpretation import default
from k8s_scheduler.app.options import AccessOptions, EvaluationMode, RunOptions
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.app.shadow import process as shadow
from k8s_scheduler.cli.main import main
from k8s_scheduler.obs import logging as logs

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false, leaseDuration: 20s, resourceName: from-file}
"""


class Daemon:
    """Stands for app.lifecycle: keeps the options it was started with."""

    def __init__(self):
        self.options = None
        self.exit_code = 0

    def run(self, options):
        self.options = options
        return self.exit_code


@pytest.fixture
def daemon(monkeypatch):
    daemon = Daemon()
    lifecycle = types.SimpleNamespace(run=daemon.run)
    monkeypatch.setitem(sys.modules, "k8s_scheduler.app.lifecycle", lifecycle)
    yield daemon
    logs.reset()


def run(*args):
    return CliRunner().invoke(main, ["run", *args])


def options_of(daemon, *args) -> RunOptions:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return daemon.options


class TestDefaults:
    """Without flags everything is as in kube-scheduler."""

    def test_no_flags(self, daemon):
        options = options_of(daemon)
        assert options.bind_address == "0.0.0.0"
        assert options.secure_port == 10259
        assert options.verbosity == 0
        assert options.logging_format == "text"
        assert options.pod_max_in_unschedulable_pods_seconds == 300.0
        assert options.record_file is None
        assert options.record_max_bytes == 256 * 1024 * 1024
        assert [p.scheduler_name for p in options.configuration.profiles] == ["default-scheduler"]
        assert options.configuration.settings.leader_election.leader_elect is True

    def test_empty_values_count_as_not_given(self, daemon):
        options = options_of(daemon, "--config=", "--kubeconfig=")
        assert options.configuration_flags.config_file is None
        assert options.configuration.settings.client_connection.kubeconfig == ""


class TestValues:
    """Values are taken in Go's notation."""

    @pytest.mark.parametrize(
        ("args", "elect"),
        [
            (["--leader-elect"], True),
            (["--leader-elect=true"], True),
            (["--leader-elect=1"], True),
            (["--leader-elect=false"], False),
            (["--leader-elect=F"], False),
            (["--leader-elect", "--kubeconfig=x"], True),
            (["--leader-elect", "-v", "2"], True),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_booleans_with_and_without_value(self, daemon, args, elect):
        options = options_of(daemon, *args)
        assert options.configuration.settings.leader_election.leader_elect is elect

    @pytest.mark.parametrize("args", [["-v", "4"], ["-v=4"], ["-v4"], ["--v=4"], ["--v", "4"]])
    def test_verbosity_in_every_form(self, daemon, args):
        assert options_of(daemon, *args).verbosity == 4

    def test_all_leader_election_flags_arrive(self, daemon):
        options = options_of(
            daemon,
            "--leader-elect-lease-duration=1m0s",
            "--leader-elect-renew-deadline=40s",
            "--leader-elect-retry-period=500ms",
            "--leader-elect-resource-lock=leases",
            "--leader-elect-resource-name=n",
            "--leader-elect-resource-namespace=ns",
        )
        election = options.configuration.settings.leader_election
        assert election.lease_duration_seconds == 60.0
        assert election.renew_deadline_seconds == 40.0
        assert election.retry_period_seconds == 0.5
        assert (election.resource_name, election.resource_namespace) == ("n", "ns")

    def test_access_flags_arrive(self, daemon):
        assert options_of(daemon).access == AccessOptions()
        assert options_of(
            daemon,
            "--authentication-kubeconfig=/a",
            "--authorization-kubeconfig=/b",
            "--client-ca-file=/ca",
            "--authorization-always-allow-paths=/livez, /metrics*",
            "--authentication-token-webhook-cache-ttl=1m",
            "--authorization-webhook-cache-authorized-ttl=5s",
            "--authorization-webhook-cache-unauthorized-ttl=0",
        ).access == AccessOptions(
            authentication_kubeconfig="/a",
            authorization_kubeconfig="/b",
            client_ca_file=Path("/ca"),
            always_allow_paths=("/livez", "/metrics*"),
            token_ttl_seconds=60.0,
            authorized_ttl_seconds=5.0,
            unauthorized_ttl_seconds=0.0,
        )
        assert options_of(daemon, "--authorization-always-allow-paths=").access == AccessOptions(
            always_allow_paths=()
        )

    def test_serving_and_recording_flags_arrive(self, daemon):
        options = options_of(
            daemon,
            "--bind-address=::1",
            "--secure-port=0",
            "--tls-cert-file=/c",
            "--tls-private-key-file=/k",
            "--logging-format=json",
            "--pod-max-in-unschedulable-pods-duration=1h",
            "--pod-max-attempts=3",
            "--verify-cache=0.25",
            "--record=/r",
            "--record-max-bytes=2000000",
        )
        assert (options.bind_address, options.secure_port) == ("::1", 0)
        assert (options.tls_cert_file, options.tls_private_key_file) == (Path("/c"), Path("/k"))
        assert options.logging_format == "json"
        assert options.pod_max_in_unschedulable_pods_seconds == 3600.0
        assert options.pod_max_attempts == 3
        assert (options.evaluation, options.verified_share) == (EvaluationMode.INCREMENTAL, 0.25)
        assert options_of(daemon, "--evaluation=plain").evaluation is EvaluationMode.PLAIN
        assert (options.record_file, options.record_max_bytes) == (Path("/r"), 2_000_000)

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (["-v", "11"], '"11" is not a level from 0 to 10'),
            (["-v", "x"], '"x" is not a level from 0 to 10'),
            (["--leader-elect=maybe"], '"maybe" is neither true nor false'),
            (["--leader-elect-retry-period=2"], '"2" is not a duration; write it like "15s"'),
            (["--pod-max-in-unschedulable-pods-duration=-1s"], '"-1s" is negative'),
            (["--secure-port=65536"], "65536 is not in the range 0<=x<=65535"),
            (["--bind-address=localhost"], '"localhost" is not an IP address'),
            (["--logging-format=xml"], "'xml' is not one of 'text', 'json'"),
            (["--tls-cert-file=/c"], "--tls-cert-file and --tls-private-key-file go together"),
            (["--record-max-bytes=2000000"], "--record-max-bytes needs --record"),
            (["--record=/r", "--record-max-bytes=1"], "1 is not in the range x>=1048576"),
            (["--evaluation=fast"], "'fast' is not one of 'incremental', 'plain'"),
            (["--verify-cache=2"], "2.0 is not in the range 0<=x<=1"),
            (["--verify-cache=nan"], '"nan" is not a number from 0 to 1'),
            (
                ["--verify-cache=0.1", "--evaluation=plain"],
                "--verify-cache checks what --evaluation=incremental keeps; plain keeps nothing",
            ),
            (["--hang-timeout=1ns"], '"1ns" is too short: give 1s or more, or 0 for never'),
            (
                ["--authorization-always-allow-paths=/a*b"],
                'only trailing * allowed in "a*b"',
            ),
            (["extra"], "Got unexpected extra argument (extra)"),
            (["--leader-elct"], "(Did you mean one of: '--leader-elect'"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_bad_values_end_with_exit_code_2(self, daemon, args, message):
        result = run(*args)
        assert result.exit_code == ExitCode.USAGE
        assert message in result.output
        assert daemon.options is None


class TestWithoutAPort:
    """Flags about a port that nobody serves are named, not passed over."""

    @pytest.mark.parametrize("command", ["run", "shadow"])
    def test_those_that_were_given_are_named(self, daemon, monkeypatch, command):
        monkeypatch.setattr(shadow, "run", daemon.run)
        flags = ["--tls-cert-file=c", "--tls-private-key-file=k", "--client-ca-file=a"]
        result = CliRunner().invoke(main, [command, "--secure-port=0", *flags])
        assert result.exit_code == 0
        assert (
            "--tls-cert-file, --tls-private-key-file, --client-ca-file: nothing is served with "
            "--secure-port 0"
        ) in result.output

    @pytest.mark.parametrize("flags", [["--secure-port=0"], ["--bind-address=127.0.0.1"]])
    def test_otherwise_nothing_is_said(self, daemon, flags):
        assert "has no effect" not in run(*flags).output


class TestConfiguration:
    """Who wins: leader election flags, then the file, then the deprecated flags."""

    def test_explicit_leader_election_flags_override_the_file(self, daemon, tmp_path):
        path = tmp_path / "c.yaml"
        path.write_text(CONFIG)
        options = options_of(daemon, f"--config={path}", "--leader-elect")
        election = options.configuration.settings.leader_election
        assert election.leader_elect is True
        assert election.lease_duration_seconds == 20.0
        assert election.resource_name == "from-file"
        assert options.configuration_flags.config_file == path

    def test_connection_flags_count_without_a_file(self, daemon):
        options = options_of(daemon, "--kubeconfig=/k", "--kube-api-qps=20", "--kube-api-burst=30")
        connection = options.configuration.settings.client_connection
        assert (connection.kubeconfig, connection.qps, connection.burst) == ("/k", 20.0, 30)

    def test_connection_flags_are_ignored_with_a_file_and_said_so(self, daemon, tmp_path, capsys):
        path = tmp_path / "c.yaml"
        path.write_text(CONFIG + "clientConnection: {kubeconfig: /in-file, qps: 5}\n")
        result = run(
            f"--config={path}", "--kubeconfig=/k", "--kube-api-qps=20", "--kube-api-burst=30"
        )
        connection = daemon.options.configuration.settings.client_connection
        assert (connection.kubeconfig, connection.qps, connection.burst) == ("/in-file", 5.0, 100)
        for sentence in (
            "--kube-api-qps: set clientConnection.qps in the file given by --config",
            "--kube-api-burst: set clientConnection.burst in the file given by --config",
            "--kubeconfig: the file given by --config names /in-file instead",
        ):
            assert sentence in result.stderr

    def test_kubeconfig_flag_fills_in_what_the_file_leaves_open(self, daemon, tmp_path):
        path = tmp_path / "c.yaml"
        path.write_text(CONFIG)
        options = options_of(daemon, f"--config={path}", "--kubeconfig=/k")
        assert options.configuration.settings.client_connection.kubeconfig == "/k"

    def test_burst_without_qps_is_said_to_have_no_effect(self, daemon):
        result = run("--kube-api-burst=30")
        assert "there is no limit unless --kube-api-qps is set" in result.stderr

    def test_warnings_of_the_file_are_logged(self, daemon, tmp_path):
        path = tmp_path / "c.yaml"
        path.write_text(CONFIG + "enableProfiling: false\n")
        result = run(f"--config={path}")
        assert f"{path}:4: enableProfiling: there is no Go runtime to profile" in result.stderr

    def test_wrong_file_ends_with_exit_code_2_and_no_traceback(self, daemon, tmp_path):
        path = tmp_path / "c.yaml"
        path.write_text(CONFIG + "profile: []\nparallelism: 0\n")
        result = run(f"--config={path}")
        assert result.exit_code == ExitCode.USAGE
        assert result.stderr.splitlines() == [
            f'{path}:4: profile: unknown field "profile"; did you mean "profiles"?',
            (
                f"{path}:5: parallelism: Invalid value: 0: should be an integer value greater than "
                "zero"
            ),
        ]
        assert daemon.options is None

    def test_missing_file_ends_with_exit_code_2(self, daemon):
        result = run("--config=/nowhere.yaml")
        assert result.exit_code == ExitCode.USAGE
        assert result.stderr == "/nowhere.yaml: cannot be read: No such file or directory\n"

    def test_negative_flags_are_reported_under_their_names(self, daemon):
        result = run("--kube-api-qps=nan", "--kube-api-burst=-1")
        assert result.exit_code == ExitCode.USAGE
        assert "--kube-api-qps: Invalid value: NaN: must be a finite number" in result.stderr
        assert "--kube-api-burst: Invalid value: -1: must be non-negative" in result.stderr


@pytest.mark.parametrize("code", list(ExitCode))
def test_exit_code_is_the_daemons(daemon, code):
    daemon.exit_code = code
    assert run().exit_code == code


@pytest.mark.parametrize("args", [["--version"], ["run", "--version"]])
def test_version_is_shown(args):
    result = CliRunner().invoke(main, args)
    assert (result.exit_code, result.output) == (0, f"k8s-scheduler {__version__}\n")


def test_config_and_config_map_exclude_each_other(daemon, tmp_path):
    result = run(f"--config={tmp_path}/c.yaml", "--config-map=ns/m")
    assert result.exit_code == 2
    assert "--config and --config-map exclude each other" in result.output
    assert daemon.options is None


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--config-map=ns/Upper", '"Upper" cannot be the name of a ConfigMap'),
        ("--config-map=a/b/c", '"a/b" cannot be a namespace'),
        ("--config-map=ns/m:a b", '"a b" cannot be a key'),
        ("--last-good-config-map=ns/m:key", "names a key; only NAMESPACE/NAME is expected"),
        ("--last-good-config-map=m", "has no namespace, and POD_NAMESPACE is not set"),
    ],
)
def test_a_config_map_that_cannot_be_is_refused(daemon, monkeypatch, flag, message):
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    result = run(flag)
    assert result.exit_code == 2
    assert message in result.output.replace("\n", " ")
    assert daemon.options is None


def test_the_last_good_one_cannot_be_kept_where_the_configuration_is(daemon):
    result = run("--config-map=ns/m:a.yaml", "--last-good-config-map=ns/m")
    assert result.exit_code == ExitCode.USAGE
    assert "name the same ConfigMap" in result.output


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR2])
def test_signals_for_a_running_daemon_do_not_end_one_that_is_starting(daemon, monkeypatch, number):
    def start(flags):
        # Nothing but this has set a handler by then.
        assert callable(signal.getsignal(number))
        os.kill(os.getpid(), number)
        return Start(default(flags))

    before = signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr(starting, "load_start", start)
    try:
        assert run().exit_code == 0
    finally:
        signal.signal(number, before)


def test_the_pods_own_namespace_is_filled_in(daemon, monkeypatch, tmp_path):
    monkeypatch.setenv("POD_NAME", "me")
    monkeypatch.setenv("POD_NAMESPACE", "home")
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    flags = options_of(daemon, f"--config={path}", "--last-good-config-map=m").configuration_flags
    assert str(flags.last_good) == "home/m"
    assert (flags.pod_name, flags.pod_namespace) == ("me", "home")


def test_the_text_of_the_configuration_is_kept(daemon, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    assert options_of(daemon, f"--config={path}").configuration_text == CONFIG
    assert options_of(daemon).configuration_text is None
