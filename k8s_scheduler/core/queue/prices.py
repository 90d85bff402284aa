"""What it costs to judge a pod once, in microseconds of CPU: counted, the core has no clock.

Ordinary pods are all the same: a tenth of a millisecond. One at the limits of the configuration may
cost a hundred times that, and many of them, parked, are judged whenever something changes. How many
are judged in a message, or in a second, is therefore limited by price.
"""

from typing import Final

from k8s_scheduler.api.config.limits import PodLimits
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_counts import pod_counts

# A pod of which nothing is out of the ordinary, and the price from which a pod is dear.
ORDINARY: Final = 100
DEAR: Final = 1_000

# As measured on some hundred nodes, one of each more: by field of `PodLimits`.
_EACH: Final = {
    "affinity_terms": 60,
    "topology_spread_constraints": 150,
    "selector_expressions": 2,
    "selector_values": 1,
    "node_selector_terms": 20,
    "node_selector_expressions": 15,
    "node_selector_values": 1,
    "resources": 40,
    "host_ports": 8,
    "tolerations": 2,
    "volumes": 20,
    "claims": 40,
    "containers": 5,
    "labels": 1,
    "spec_bytes": 0,
}
_PRICES: Final = tuple(_EACH[name] for name in PodLimits.__struct_fields__)


# Prices go for some hundred rows: judging on so many costs as much again.
_ROWS: Final = 1_000


def judging(price: int, rows: int) -> int:
    """Return what it costs to judge a pod of this price on so many rows."""
    return price + price * rows // _ROWS


def price_of(pod: Pod) -> int:
    return ORDINARY + sum(
        count * price for count, price in zip(pod_counts(pod), _PRICES, strict=True)
    )
