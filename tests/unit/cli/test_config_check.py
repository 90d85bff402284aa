"""`config check` says OK, or every error."""

from click.testing import CliRunner

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.main import main

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def check(path, text):
    path.write_text(text)
    return CliRunner().invoke(main, ["config", "check", str(path)])


def test_a_good_file_is_ok_and_what_it_means_is_said(tmp_path):
    result = check(tmp_path / "c.yaml", HEADER)
    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr, lines[-1]) == (0, "", "OK")
    assert "profile default-scheduler" in lines


def test_warnings_are_shown_and_it_is_still_ok(tmp_path):
    path = tmp_path / "c.yaml"
    result = check(path, HEADER + "enableProfiling: false\n")
    assert result.exit_code == 0
    assert result.stdout.endswith("OK\n")
    assert result.stderr == (
        f"warning: {path}:3: enableProfiling: there is no Go runtime to profile; it has no effect\n"
    )


def test_an_extender_is_accepted_with_a_warning_that_nothing_would_run(tmp_path):
    path = tmp_path / "c.yaml"
    result = check(path, HEADER + "extenders:\n- {urlPrefix: 'http://a', filterVerb: filter}\n")
    assert result.exit_code == 0
    assert "extender http://a: filter" in result.stdout.splitlines()
    assert result.stderr.startswith(
        f"warning: {path}:4: extenders[0]: extenders are not supported yet, and pods would be"
    )


def test_every_error_is_shown_and_counted(tmp_path):
    path = tmp_path / "c.yaml"
    text = HEADER + "profiles:\n- plugins:\n    filter:\n      enabled: [{name: NodeNam}]\nx: 1\n"
    result = check(path, text)
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        (
            f'{path}:6: profiles[0].plugins.filter.enabled[0].name: FilterPlugin "NodeNam" '
            'does not exist; did you mean "NodeName"?'
        ),
        f'{path}:7: x: unknown field "x"',
        "2 errors",
    ]


def test_a_missing_file_is_one_error(tmp_path):
    result = CliRunner().invoke(main, ["config", "check", str(tmp_path / "none")])
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == (
        f"{tmp_path}/none: cannot be read: No such file or directory\n1 error\n"
    )
