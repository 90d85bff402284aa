"""Whatever text is offered, the daemon runs on: the last good configuration stays in force."""

import pytest

from k8s_scheduler.app.configuration import interpretation as configuration
from tests.fakes.clock import virtual_time
from tests.unit.app.configuration.test_reload import no_threads, running, text

__all__ = ["no_threads"]  # a fixture for all tests here, too


@virtual_time
async def test_a_text_on_which_our_own_code_fails_is_refused_and_told(monkeypatch, caplog):
    def fail(*_, **__):
        raise OverflowError("hunter22")

    async with running(text("ours")) as scene:
        monkeypatch.setattr(configuration, "configuration_from_text", fail)
        scene.put(text("theirs"))
        await scene.look()
        assert scene.graph.pump.core.scheduler_names == {"ours"}
        assert scene.count("refused") == 1
        (note,) = scene.events()
        assert "ns/own:config.yaml: cannot be interpreted: OverflowError in the scheduler" in note
        assert "hunter22" not in note
        assert "Traceback" in caplog.text


@virtual_time
@pytest.mark.parametrize(
    "more",
    [
        "clientConnection: {qps: 1" + "0" * 400 + "}\n",
        "parallelism: 0x" + "f" * 5000 + "\n",
        'percentageOfNodesToScore: "\\ud800"\n',
        '"\\ud800": 1\n',
    ],
    ids=["endless", "endless and hexadecimal", "half a character", "a name of half a character"],
)
async def test_no_text_ends_the_daemon(more):
    async with running(text("ours")) as scene:
        scene.put(text("ours", more=more))
        await scene.look()
        assert scene.count("refused") == 1
        (note,) = scene.events()
        assert "ns/own:config.yaml:10: " in note
