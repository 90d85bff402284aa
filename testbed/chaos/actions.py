"""The actions of a plan, carried out on the stage.

An action that takes time does its first half at once and asks for its second half later, so that
other things go on meanwhile; `Agenda` remembers those. A second half that fails because the API
server is away is tried again: what was broken is always mended before the run is judged.
"""

import heapq
import itertools
import random
import signal
import time
from collections.abc import Callable

from testbed.chaos.evidence import NOT_DONE, Done
from testbed.chaos.plan import BACKGROUND, Action, Step
from testbed.chaos.replica import Replica
from testbed.chaos.stage import LEASE_SECONDS, Stage
from testbed.errors import ApiError, TestbedError
from testbed.options import API_SERVER, CONTROLLER_MANAGER, ETCD
from testbed.proxy.certificates import new_identity
from testbed.workload import NODES

_AGAIN_SECONDS = 1.0
_LEADER_SECONDS = 6.0
_LOOK_SECONDS = 0.2
_NOBODY = f"{NOT_DONE}: nobody leads"
_MERE_TROUBLE = (OSError, ApiError)

Deed = Callable[[], None]


class Agenda:
    """What is to be done later, by the machine's clock."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._numbers = itertools.count()
        self._deeds: list[tuple[float, int, Deed]] = []

    def later(self, seconds: float, deed: Deed) -> None:
        """Have something done in so many seconds."""
        entry = (self._clock() + seconds, next(self._numbers), deed)
        heapq.heappush(self._deeds, entry)

    def do_due(self) -> None:
        """Do what is due; what fails for want of a server is tried again."""
        while self._deeds and self._deeds[0][0] <= self._clock():
            self._do(heapq.heappop(self._deeds)[2])

    def do_all(self, *, timeout_seconds: float) -> None:
        """Do everything at once; TestbedError if it can't be done in time."""
        deadline = self._clock() + timeout_seconds
        while self._deeds:
            if self._clock() > deadline:
                raise TestbedError(f"{len(self._deeds)} things could not be put right again")
            self._do(heapq.heappop(self._deeds)[2])
            if self._deeds and self._deeds[0][0] > self._clock():
                self._sleep(_LOOK_SECONDS)

    def _do(self, deed: Deed) -> None:
        try:
            deed()
        except _MERE_TROUBLE:
            self.later(_AGAIN_SECONDS, deed)


class Actions:
    """Carries out steps, and notes what was done and when."""

    def __init__(
        self, stage: Stage, agenda: Agenda, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._stage = stage
        self._agenda = agenda
        self._clock = clock
        self._identities = itertools.count()
        # By replica: the last step that brought faults. An earlier one that ends leaves them be.
        self._faults_by: dict[str, Step] = {}
        self._deeds: dict[Action, Callable[[Step, random.Random], str]] = {
            Action.KILL_LEADER: self._kill_leader,
            Action.FREEZE_LEADER: self._freeze_leader,
            Action.STOP_LEADER: self._stop_leader,
            Action.RESTART_API_SERVER: self._restart_api_server,
            Action.KILL_API_SERVER: self._kill_api_server,
            Action.RESTART_ETCD: self._restart_etcd,
            Action.COMPACT: self._compact,
            Action.FAULTS: self._faults,
            Action.EXPIRE_TOKEN: self._expire_token,
            Action.ROTATE: self._rotate,
            Action.DELETE_NODE: self._delete_node,
            Action.CORDON: self._cordon,
            Action.GOOD_RELOAD: self._good_reload,
            Action.BAD_RELOAD: self._bad_reload,
        }
        self.done: list[Done] = []

    def carry_out(self, step: Step) -> None:
        """Do a step; trouble with the API server is part of the game and noted."""
        began = self._clock()
        try:
            detail = self._deeds[step.action](step, random.Random(step.luck))
        except _MERE_TROUBLE as error:
            detail = f"{NOT_DONE}: {error}"
        self.done.append(Done(began, self._clock(), step.action, detail))

    # The leader

    def _kill_leader(self, _step: Step, _draw: random.Random) -> str:
        return self._signal_leader(signal.SIGKILL)

    def _stop_leader(self, _step: Step, _draw: random.Random) -> str:
        return self._signal_leader(signal.SIGTERM)

    def _freeze_leader(self, _step: Step, draw: random.Random) -> str:
        leader = self._find_leader()
        if leader is None:
            return _NOBODY
        leader.signal(signal.SIGSTOP)
        thaw_seconds = LEASE_SECONDS + draw.uniform(1.0, 4.0)
        self._agenda.later(thaw_seconds, lambda: leader.signal(signal.SIGCONT))
        return leader.name

    def _signal_leader(self, number: signal.Signals) -> str:
        leader = self._find_leader()
        if leader is None:
            return _NOBODY
        leader.signal(number)
        return leader.name

    def _find_leader(self) -> Replica | None:
        """Return the leader; if nobody leads just now, somebody may in a moment."""
        deadline = self._clock() + _LEADER_SECONDS
        while (leader := self._stage.leader()) is None and self._clock() < deadline:
            time.sleep(_LOOK_SECONDS)
        return leader

    # The control plane

    def _restart_api_server(self, _step: Step, draw: random.Random) -> str:
        self._stage.bed.stop(API_SERVER)
        return self._api_server_back(draw)

    def _kill_api_server(self, _step: Step, draw: random.Random) -> str:
        self._stage.bed.kill(API_SERVER)
        return self._api_server_back(draw)

    def _api_server_back(self, draw: random.Random) -> str:
        seconds = draw.uniform(0.0, 3.0)
        time.sleep(seconds)
        self._stage.bed.start(API_SERVER)
        # By itself it takes up to a minute to notice, and nobody would open new nodes till then.
        self._stage.bed.restart(CONTROLLER_MANAGER)
        return f"away for {seconds:.1f} s"

    def _restart_etcd(self, _step: Step, _draw: random.Random) -> str:
        self._stage.bed.restart(ETCD)
        return ""

    def _compact(self, _step: Step, _draw: random.Random) -> str:
        return f"to revision {self._stage.compact()}"

    # The way there

    def _faults(self, step: Step, draw: random.Random) -> str:
        chosen = draw.sample(self._stage.replicas, draw.randint(1, len(self._stage.replicas)))
        for replica in chosen:
            self._faults_by[replica.name] = step
            replica.proxy.set_rules(step.rules)
            if draw.random() < 0.5:  # watches, too, meet them then
                replica.proxy.drop_connections()
        self._agenda.later(draw.uniform(4.0, 10.0), lambda: self._end_faults(step, chosen))
        return ", ".join(replica.name for replica in chosen)

    def _end_faults(self, step: Step, replicas: list[Replica]) -> None:
        for replica in replicas:
            if self._faults_by[replica.name] is step:
                replica.proxy.set_rules(BACKGROUND)

    def _expire_token(self, _step: Step, draw: random.Random) -> str:
        replica = draw.choice(self._stage.replicas)
        replica.proxy.expire(replica.login)
        self._agenda.later(draw.uniform(0.5, 4.0), lambda: _log_in(replica))
        return replica.name

    def _rotate(self, _step: Step, draw: random.Random) -> str:
        replica = draw.choice(self._stage.replicas)
        folder = self._stage.bed.state_dir / f"identity-{next(self._identities)}"
        replica.proxy.rotate(new_identity(folder))
        self._agenda.later(draw.uniform(0.5, 4.0), lambda: _log_in(replica))
        return replica.name

    # The nodes

    def _delete_node(self, _step: Step, draw: random.Random) -> str:
        node = draw.choice(self._stage.nodes)
        client = self._stage.bed.client
        name = node["metadata"]["name"]

        def put_back() -> None:
            try:
                client.create(NODES, node)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise

        self._agenda.later(draw.uniform(3.0, 8.0), put_back)
        client.delete(f"{NODES}/{name}")
        return str(name)

    def _cordon(self, _step: Step, draw: random.Random) -> str:
        name = draw.choice(self._stage.nodes)["metadata"]["name"]
        client = self._stage.bed.client

        def uncordon() -> None:
            try:
                client.patch(f"{NODES}/{name}", {"spec": {"unschedulable": None}})
            except ApiError as error:
                if error.status != 404:  # deleted meanwhile: it comes back open
                    raise

        self._agenda.later(draw.uniform(4.0, 10.0), uncordon)
        client.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
        return str(name)

    # The configuration

    def _good_reload(self, _step: Step, draw: random.Random) -> str:
        return self._stage.configuration.write_good(draw)

    def _bad_reload(self, _step: Step, draw: random.Random) -> str:
        mount = self._stage.configuration

        def mend() -> None:
            mount.write_good(draw)

        # Long enough for everybody to see it.
        self._agenda.later(draw.uniform(6.0, 9.0), mend)
        return mount.write_bad(draw)


def _log_in(replica: Replica) -> None:
    replica.proxy.log_in(replica.login)
