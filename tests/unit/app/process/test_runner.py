"""A process around its connection: stop signals, exit codes, a user's mistakes."""

import asyncio
import os
import signal

import pytest

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.app.process.runner import run_process
from k8s_scheduler.core.setup import ProfileError

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: me}}]
clusters: [{name: it, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: me, user: {}}]
"""


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    return str(path)


def test_main_is_given_the_connection_and_its_code_is_returned(kubeconfig):
    async def main(connected):
        assert connected.server == "http://127.0.0.1:9"
        assert not connected.stop.is_set()
        return 7

    assert run_process(main, kubeconfig) == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_stop(kubeconfig, number):
    before = signal.getsignal(number)

    async def main(connected):
        os.kill(os.getpid(), number)
        await asyncio.wait_for(connected.stop.wait(), 60)
        return int(ExitCode.OK)

    try:
        assert run_process(main, kubeconfig) == ExitCode.OK
        # The second signal is not caught: it ends the process at once.
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ProfileError("profile x: no such plugin"), "profile x: no such plugin\n"),
        (OSError(98, "address already in use"), "address already in use\n"),
    ],
)
def test_a_mistake_is_told_without_a_traceback(kubeconfig, capsys, error, told):
    async def main(_connected):
        raise error

    assert run_process(main, kubeconfig) == ExitCode.USAGE
    assert capsys.readouterr().err == told


def test_without_credentials_nothing_is_started(tmp_path, capsys):
    async def main(_connected):
        pytest.fail("started")

    assert run_process(main, str(tmp_path / "absent")) == ExitCode.NO_CREDENTIALS
    assert "absent" in capsys.readouterr().err


def test_a_defect_is_not_hidden(kubeconfig):
    async def main(_connected):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_process(main, kubeconfig)
