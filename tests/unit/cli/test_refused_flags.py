"""kube-scheduler's other flags are refused by name, all at once, with what to do instead."""

import pytest
from click.testing import CliRunner

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.main import main
from k8s_scheduler.cli.refused_flags import REFUSED_FLAGS
from k8s_scheduler.cli.run import run


@pytest.mark.parametrize("form", ["{}", "{}=x"])
@pytest.mark.parametrize("flag", REFUSED_FLAGS)
def test_flag_is_refused_by_name(flag, form):
    result = CliRunner().invoke(main, ["run", form.format(flag)])
    assert result.exit_code == ExitCode.USAGE
    assert (
        f"{flag} is a kube-scheduler flag that k8s-scheduler does not support: "
        f"{REFUSED_FLAGS[flag]}"
    ) in result.output


def test_all_refused_flags_of_a_manifest_are_named_at_once():
    args = [
        "--authentication-skip-lookup=true",
        "--requestheader-allowed-names=b",
        "--bind-address=127.0.0.1",
        "--leader-elect=true",
        "--feature-gates",
        "A=true",
    ]
    output = CliRunner().invoke(main, ["run", *args]).output
    for flag in (
        "--authentication-skip-lookup",
        "--requestheader-allowed-names",
        "--feature-gates",
    ):
        assert f"{flag} is a kube-scheduler flag" in output
    assert output.count("is a kube-scheduler flag") == 3


def test_no_flag_is_both_supported_and_refused():
    supported = {name for parameter in run.params for name in parameter.opts}
    assert supported.isdisjoint(REFUSED_FLAGS)


def test_an_unknown_flag_is_not_blamed_on_kube_scheduler():
    result = CliRunner().invoke(main, ["run", "--no-such-thing"])
    assert result.exit_code == ExitCode.USAGE
    assert "No such option '--no-such-thing'" in result.output
    assert "kube-scheduler flag" not in result.output
