"""How many requests are sent at the same time, and how many connections that takes.

Each lane has workers of its own, and each worker a connection: with fewer of these a binding would
stand in line behind events. A connection is made when it is needed and closed when it is idle for
long, so a high limit costs nothing in quiet times.
"""

from typing import Final

from k8s_scheduler.api.config.types import MOST_PARALLELISM
from k8s_scheduler.api.kinds import BUILT_IN

BINDING_WORKERS: Final = 64
CONDITION_WORKERS: Final = 8
EVENT_WORKERS: Final = 8
POD_READING_WORKERS: Final = 2

_WRITERS: Final = BINDING_WORKERS + CONDITION_WORKERS + EVENT_WORKERS + MOST_PARALLELISM
# Each reads one thing at a time: a list of each kind (pods, nodes and the configuration's ConfigMap
# among them), the lease, the last good configuration, the comparison, rejected pods, our own pod.
_READERS: Final = len(BUILT_IN) + 3 + 5 + POD_READING_WORKERS
# Reviews of the tokens that are shown at our own port; they come and go quickly.
_REVIEWS: Final = 8
REQUEST_CONNECTIONS: Final = _WRITERS + _READERS + _REVIEWS
