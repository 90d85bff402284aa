"""What nobody has waited for: a broken connection is no failure, everything else is."""

import asyncio
import logging
import ssl

import pytest

from k8s_scheduler.app.process.event_loop import new_event_loop


def reported(context, caplog):
    """Let the loop report something; return what is said to operators."""

    async def report():
        asyncio.get_running_loop().call_exception_handler(context)

    with (
        caplog.at_level(logging.INFO),
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        runner.run(report())
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    "context",
    [
        {"message": "Future exception was never retrieved", "exception": ConnectionResetError()},
        {
            "message": "Fatal error on SSL protocol\nx",
            "exception": RuntimeError("closed"),
        },
        {"message": "Fatal error on transport", "exception": BrokenPipeError(32, "Broken pipe")},
        {"message": "SSL error in data received", "exception": ssl.SSLError(1, "bad record")},
    ],
    ids=["reset", "closed", "pipe", "bad record"],
)
def test_a_broken_connection_is_said_by_who_used_it(caplog, context):
    assert reported(context, caplog) == []


@pytest.mark.parametrize(
    "context",
    [
        {"message": "Future exception was never retrieved", "exception": KeyError("x")},
        {"message": "Exception in callback f()", "exception": RuntimeError("a bug")},
        {"message": "Future exception was never retrieved", "exception": OSError(28, "disk full")},
        {"message": "Task was destroyed but it is pending!"},
    ],
    ids=["future", "callback", "disk", "task"],
)
def test_everything_else_is_loud(caplog, context):
    (said,) = reported(context, caplog)
    assert said.startswith(context["message"])
