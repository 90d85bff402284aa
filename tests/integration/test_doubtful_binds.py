"""A webhook that is down refuses every Binding of one namespace: others go on, and it recovers."""

import asyncio
import functools

from k8s_scheduler.kube.write import dispatcher
from k8s_scheduler.kube.write.bind_machine import BindPolicy
from k8s_scheduler.kube.write.dispatcher import DispatcherConfig
from testbed.sandbox import Sandbox
from testbed.webhook import COLLECTION, WEBHOOK, broken_webhook, wait_until_down
from testbed.workload import make_node, make_pod
from tests.integration.daemons import bound, events, stand_up
from tests.integration.overtaken import racing, soon

NAME = "racer"
# The server stores nothing of what its admission gives up, so that seconds do in place of minutes.
HASTY = BindPolicy(settle_seconds=2.0, post_limit=3, backoff_maximum_seconds=1.0)


def pods(count):
    return [make_pod(f"p{i}", scheduler_name=NAME) for i in range(count)]


async def test_pods_end_with_a_clear_event_and_are_bound_once_the_webhook_is_gone(
    sandbox, monkeypatch
):
    config = functools.partial(DispatcherConfig, bind_policy=HASTY)
    monkeypatch.setattr(dispatcher, "DispatcherConfig", config)
    webhook = f"guard-{sandbox.namespace}"
    with Sandbox(sandbox.bed) as others:

        def prepare():
            stand_up(sandbox, make_node("n1", cpu="32"))
            configuration = broken_webhook(webhook, sandbox.namespace)
            sandbox.create_cluster_object(COLLECTION, configuration)
            wait_until_down(sandbox.client, sandbox.namespace)

        await asyncio.to_thread(prepare)
        async with racing(sandbox, NAME, lambda *_: None) as racer:
            await asyncio.to_thread(sandbox.create_pods, pods(4))
            await soon(lambda: racer.count("k8s_scheduler_doubtful_binds") == 4, "all in doubt")
            await asyncio.to_thread(others.create_pods, pods(4))
            await soon(lambda: len(bound(others)) == 4, "those of others are bound")
            failed = await soon(
                lambda: {n: text for n, text in events(sandbox, "FailedScheduling") if n == "p3"},
                "it ends, and is told",
            )
            assert f'failed calling webhook "{WEBHOOK}"' in failed["p3"]
            assert await asyncio.to_thread(bound, sandbox) == {}
            assert await asyncio.to_thread(events, others, "FailedScheduling") == []
            outcome = {"outcome": "not_executed"}
            assert racer.count("k8s_scheduler_doubtful_binds_ended_total", **outcome) >= 1
            await asyncio.to_thread(sandbox.delete, f"{COLLECTION}/{webhook}")
            await soon(lambda: len(bound(sandbox)) == 4, "bound without the webhook", 40.0)
