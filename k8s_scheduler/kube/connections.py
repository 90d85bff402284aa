"""How many connections requests may have: one for everybody who may want one at the same time.

Whoever has none waits in line, first come, first served. With fewer connections than workers a
binding would stand behind events, although each has workers of its own. A connection is made only
when it is needed and closed when it is idle for long, so a high limit costs nothing in quiet times.
"""

from typing import Final

from k8s_scheduler.api.config import MOST_PARALLELISM
from k8s_scheduler.kube import pod_reader, recorder
from k8s_scheduler.kube.dispatcher import DispatcherConfig
from k8s_scheduler.kube.resources import OTHERS

_LANES: Final = DispatcherConfig()
WRITERS: Final = (
    _LANES.bind_workers + _LANES.condition_workers + recorder.WORKERS + MOST_PARALLELISM
)
# Each reads one thing at a time: a list of each kind (pods, nodes and the configuration's ConfigMap
# among them), the lease, the last good configuration, the comparison, rejected pods, our own pod.
_READERS: Final = len(OTHERS) + 3 + 5 + pod_reader.WORKERS
# Reviews of whoever asks our own port; they come and go quickly.
_REVIEWS: Final = 8
REQUEST_CONNECTIONS: Final = WRITERS + _READERS + _REVIEWS
