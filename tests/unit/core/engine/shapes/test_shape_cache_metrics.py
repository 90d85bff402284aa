"""What the core's caches take is on the page of metrics."""

from k8s_scheduler.core.messages.incoming import LimitCaches
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.obs.metrics import Metrics
from tests.inside import inside
from tests.unit.core.engine.shapes.test_shape_cache_bytes import SETUP, cluster, come_and_go, sized


def test_bytes_and_what_had_to_go_are_shown_at_every_tick():
    metrics = Metrics()
    found = cluster(3)
    found.core = Scheduler(SETUP, metrics=metrics.scheduler)
    for message in found.told:
        found.core.handle(message)
    come_and_go(found, sized, range(3))

    def shown(name, cache="evaluations"):
        return metrics.registry.get_sample_value(name, {"cache": cache})

    found.tick(1)
    assert shown("k8s_scheduler_cache_bytes") == inside(found.core).shapes.nbytes > 0
    found.tell(LimitCaches(found.now, 1))
    found.tick(1)
    assert shown("k8s_scheduler_cache_dropped_total") == found.core.tally.dropped == 2
    assert shown("k8s_scheduler_cache_bytes", "verdicts") is not None
