"""All that one core knows, as one value that each of its parts is given.

What is in checkpoints is here and nowhere else; what follows from it (kept evaluations, searches
for room, rounds of waking) belongs to the parts, which begin it anew after a checkpoint.
"""

from dataclasses import dataclass

from k8s_scheduler.core.engine.allowance import RenewalAllowances
from k8s_scheduler.core.engine.decision.sampling import Sampling
from k8s_scheduler.core.engine.limiting import Limiting
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.pods.directory import PodDirectory
from k8s_scheduler.core.engine.pods.in_flight import InFlightPods
from k8s_scheduler.core.engine.pods.suspensions import Suspensions
from k8s_scheduler.core.engine.pods.unconfirmed import Unconfirmed
from k8s_scheduler.core.engine.preemptions import Preemptions
from k8s_scheduler.core.engine.profiles_in_force import ProfilesInForce
from k8s_scheduler.core.engine.victim_limit import VictimLimit
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.cache import Cache


@dataclass(frozen=True, slots=True)
class CoreState:
    """The tables of one core, and where its parts put what follows: instructions, metrics."""

    cache: Cache
    queue: SchedulingQueue
    in_flight: InFlightPods
    suspensions: Suspensions
    unconfirmed: Unconfirmed
    preemptions: Preemptions
    # Where each pod is, of all of these.
    pods: PodDirectory
    profiles: ProfilesInForce
    limiting: Limiting
    victim_limit: VictimLimit
    renewals: RenewalAllowances
    sampling: Sampling
    verdicts: VerdictTable
    out: Outbox
    meter: Meter
