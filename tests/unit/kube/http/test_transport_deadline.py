"""Writes that meet the moment from which nobody may write: none is sent, and all are counted."""

from contextlib import suppress

import pytest

from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.connections import HttpConnection, WirePool
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.https import Handler, Server, reset, says

BINDING = "/api/v1/namespaces/a/pods/p/binding"


def late(metrics: Metrics, result: str) -> float:
    name = "k8s_scheduler_late_writes_total"
    return metrics.registry.get_sample_value(name, {"result": result}) or 0.0


def connections_made(monkeypatch: pytest.MonkeyPatch) -> list[HttpConnection]:
    """Return a list to which every connection is added when it is there."""
    made: list[HttpConnection] = []
    connect = WirePool._connect

    async def noting(pool: WirePool) -> HttpConnection:
        made.append(await connect(pool))
        return made[-1]

    monkeypatch.setattr(WirePool, "_connect", noting)
    return made


class TestDeadline:
    """`may_send` has the last word."""

    async def test_what_may_not_be_sent_any_more_is_not_sent(
        self,
        transport: ApiTransport,
        server: Server,
        metrics: Metrics,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        server.handler = says(201)
        connections = connections_made(monkeypatch)
        # Without a connection yet, and on one that is idle.
        for _ in range(2):
            with pytest.raises(NotSent, match="may not be sent any more"):
                await transport.request("POST", BINDING, body=b"{}", may_send=lambda: False)
            assert server.requests == []
        # The connection is as good as before.
        assert (await transport.request("POST", BINDING, body=b"{}")).status == 201
        assert len(connections) == 1
        assert late(metrics, "withheld") == 2

    async def test_whether_it_may_be_sent_is_asked_when_there_is_a_connection(
        self, transport: ApiTransport, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process that is stopped while it waits for one must not send when it goes on."""
        connections = connections_made(monkeypatch)
        with pytest.raises(NotSent):
            await transport.request("POST", BINDING, body=b"{}", may_send=lambda: not connections)
        assert len(connections) == 1
        assert server.requests == []

    @pytest.mark.parametrize(
        ("handler", "result"),
        [
            (says(201), "success"),
            (says(409), "conflict"),
            (says(403), "failure"),
            (reset, "unknown"),
        ],
        ids=["success", "conflict", "failure", "unknown"],
    )
    async def test_what_was_under_way_at_the_deadline_is_counted_by_its_answer(
        self,
        transport: ApiTransport,
        server: Server,
        metrics: Metrics,
        handler: Handler,
        result: str,
    ) -> None:
        server.handler = handler
        for allowed in ([True, True], [True, False]):
            with suppress(OutcomeUnknown):
                await transport.request(
                    "POST", BINDING, body=b"{}", may_send=lambda left=allowed: left.pop(0)
                )
        assert late(metrics, result) == 1
