"""The one yardstick for all harm that a tenant can do.

* No message takes more than a second of CPU.
* Nothing that others do costs more than three times what it costs without: medians of many, in two
  worlds by turns, one with the harm and one without; of three times as many where it is close.
* Once the cause is gone, what Python has allocated is within a tenth of what it was.
* No message takes so long, on this machine as it is, that the Lease could not be renewed.
* While ten thousand pods of a tenant wait or fail, each of a shape of its own, pods of others are
  decided on at most 50 ms later, at the 99th percentile, than while none does.
"""

import gc
import statistics
import tracemalloc
from dataclasses import dataclass, field

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.core.builtins import known_plugins
from tests.bench.plain_decisions import CALIBRATED_MILLISECONDS, calibration_milliseconds
from tests.tenants.others import TIMES, Costs, Others, compared
from tests.tenants.table import Row
from tests.tenants.tenant import Tenant
from tests.tenants.world import World

LONGEST_SECONDS = 1.0
SLOWER = 3.0
# From here on more samples are taken: so few may be off by as much.
DOUBTFUL = 2.0
KEPT = 1.10
LATER_SECONDS = 0.050
# What is kept for pods of a kind that does not come any more is given back after a while.
QUIET_SECONDS = 900
# At the end of it, as often as the daemon's clock ticks: some is given back at each tick.
TICKING_SECONDS = 60


def lease_seconds() -> float:
    """Return for how long nothing may hold the loop if the Lease is to be renewed in time.

    The last renewal may have been a retry period ago when the loop is taken.
    """
    election = default_configuration(known_plugins()).settings.leader_election
    return election.renew_deadline_seconds - election.retry_period_seconds


@dataclass(slots=True)
class Finding:
    """What came of one row."""

    row: str
    longest_seconds: float = 0.0
    longest_message: str = ""
    raw_seconds: float = 0.0
    # How many times more each deed of others costs.
    ratios: dict[str, float] = field(default_factory=dict)
    memory: float = 0.0
    # How much longer pods of others wait, in seconds: the median, and two shares.
    delays: tuple[float, ...] = ()
    error: str = ""

    @property
    def worst(self) -> tuple[str, float]:
        """The deed of others that has become dearest."""
        return max(self.ratios.items(), key=lambda item: item[1], default=("", 0.0))

    def failures(self) -> list[str]:
        """Return what does not hold."""
        found = [self.error] if self.error else []
        if self.longest_seconds > LONGEST_SECONDS:
            found.append(f"{self.longest_message} took {self.longest_seconds:.2f} s")
        if self.raw_seconds > lease_seconds():
            found.append(f"the lease is lost after {self.raw_seconds:.1f} s")
        deed, ratio = self.worst
        if ratio > SLOWER:
            found.append(f"{deed} of others costs {ratio:.1f} times as much")
        if self.memory > KEPT:
            found.append(f"{self.memory:.2f} times the memory is kept")
        if self.delays and self.delays[-1] > LATER_SECONDS:
            found.append(f"pods of others wait {self.delays[-1] * 1000:.0f} ms longer")
        return found

    def line(self) -> str:
        """Return what the table says of it."""
        verdict = "; ".join(self.failures()) or "holds"
        if self.delays:
            return " ".join(f"{1000 * delay:5.1f}" for delay in self.delays) + f"  {verdict}"
        return f"{self}  {self.memory:6.2f}  {verdict}"

    def __str__(self) -> str:
        deed, ratio = self.worst
        return f"{self.longest_seconds * 1000:5.0f} ms {ratio:6.2f} {deed:11}{self.error}"


def cost(row: Row, world: World, twin: World, *, count: int, times: int = TIMES) -> Finding:
    """Return what harm costs in CPU: the longest message, and what others pay.

    The harm is done to the first of two worlds that are alike.
    """
    finding = Finding(row.name)
    if row.raised:
        world.raise_limits()
        twin.raise_limits()
    harmed, spared, tenant = Others(world, times=times), Others(twin, times=times), Tenant(world)
    harmed.do_all()
    spared.do_all()
    world.start_over()
    slowness = calibration_milliseconds()
    tenant.do(row.harm(count))
    if row.meanwhile is not None:
        deeds = row.meanwhile()
        harmed.between = lambda: tenant.do([next(deeds)])
    harmed.do_all()
    found = compared(harmed, spared)
    finding.ratios = ratios(found)
    if finding.worst[1] > DOUBTFUL:
        finding.ratios = ratios(found, *(compared(harmed, spared) for _ in range(2)))
    harmed.between = lambda: None
    tenant.undo()
    slowness = max(slowness, calibration_milliseconds()) / CALIBRATED_MILLISECONDS
    finding.raw_seconds = world.longest_seconds
    finding.longest_seconds = world.longest_seconds / slowness
    finding.longest_message = world.longest_message
    return finding


def ratios(*rounds: Costs) -> dict[str, float]:
    """Return how many times more each deed costs with harm, by the medians of all rounds."""
    found = {}
    for deed in rounds[0]:
        dear = [cost for each in rounds for cost in each[deed][0]]
        cheap = [cost for each in rounds for cost in each[deed][1]]
        found[deed] = statistics.median(dear) / statistics.median(cheap)
    return found


def kept(row: Row, world: World, *, count: int) -> float:
    """Return the memory after harm as a multiple of that before; the world was made traced."""
    if row.raised:
        world.raise_limits()
    others, tenant = Others(world, times=5), Tenant(world)
    others.do_all()
    others.do_all()
    _let_rest(world)
    before = _allocated()
    tenant.do(row.harm(count))
    if row.meanwhile is not None:
        deeds = row.meanwhile()
        tenant.do([next(deeds) for _ in range(100)])
    others.do_all()
    tenant.undo()
    others.do_all()
    _let_rest(world)
    return _allocated() / before


def _let_rest(world: World) -> None:
    world.rest(QUIET_SECONDS, step=30)
    world.rest(TICKING_SECONDS)


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
