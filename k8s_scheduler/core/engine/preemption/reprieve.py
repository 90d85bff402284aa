"""Which pods may stay on a node when a more important one comes: found by sums, without judging.

Once all less important pods have left and the preempting pod fits, they are let back in one by
one, and each that does not fit any more is a victim. Where all that filters see of those pods is
how much they take, what is left of it says the same as judging the node again for each of them,
for a hundredth of the work: one tenant may have put thousands of pods on a node that others want to
make room on.

It must never answer where judging might say something else. So it goes by what plugins have
declared to read. A plugin that reads sums has to say how much room it leaves (`RoomyPlugin`). Host
ports and volumes are no sums: a plugin that looks at those has to say how many of which pods may be
there (`SiftingPlugin`), and so has a plugin that counts pods in its term, or who of them is in the
way (`BarringPlugin`); else its term must not have changed when all of them left.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from k8s_scheduler.api.resources import PODS as POD_SLOTS
from k8s_scheduler.api.resources import Requests
from k8s_scheduler.core.engine.preemption.arranged import Lesser
from k8s_scheduler.core.framework.departed import Quota
from k8s_scheduler.core.framework.dry_run_plugins import LARGEST_EXACT
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.evaluation.trial import Trial
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.plugin_errors import blaming
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.state.delta import Deltas, PlacedPod
from k8s_scheduler.core.state.news.facts import PORTS, ROOM, VOLUMES

# How much more pods may take of resources on a row.
Room = dict[str, int]


class Reprieve:
    """Knows, for one pod, what its filters leave to others."""

    def __init__(
        self,
        runtime: Runtime,
        profile: Profile,
        terms: Mapping[str, Term],
        reads: Reads | None = None,
    ) -> None:
        """Go by these terms; what plugins read is taken down in `reads`."""
        self._runtime = runtime
        self._terms = terms
        self._reads = reads
        steps = [step for step in profile.filters if step.name in terms]
        self._roomy = [
            (step, step.roomy if step.counting is None else None)
            for step in steps
            if step.shifted & ROOM
        ]
        # Those that see more of pods than sums.
        self._others = [
            step
            for step in steps
            if step.shifted & ~ROOM or (step.counting is not None and step.sifting is not None)
        ]

    def rooms(self, trials: Sequence[Trial]) -> list[Room | None]:
        """Return for each row, on all of which the pod fits, how much others may take.

        None where that can't be said.
        """
        found: list[Room | None] = [None] * len(trials)
        places = [place for place, trial in enumerate(trials) if trial.barred is not None]
        if not places or any(plugin is None for _, plugin in self._roomy):
            return found
        rows = np.array([trials[place].delta.row for place in places], dtype=np.int64)
        deltas = Deltas([trials[place].delta for place in places])
        least: list[Room] = [{} for _ in places]
        for step, plugin in self._roomy:
            with blaming(step.name, "Filter"):
                view = self._runtime.view(step, rows, deltas, self._reads)
                rooms = None if plugin is None else plugin.room(self._terms[step.name], view)
            if rooms is None:
                return found
            for here, room in zip(least, rooms, strict=True):
                narrow(here, room)
        for place, here in zip(places, least, strict=True):
            found[place] = here
        return found

    def quotas(self, trial: Trial, lesser: Lesser) -> list[Quota] | None:
        """Return of which of the lesser pods only so many may come back, whatever they take.

        They have all left, and the pod fits. None if that can't be said.
        """
        if trial.barred is None:
            return None
        found = [Quota(0, trial.barred)] if trial.barred else []
        looked_at = PORTS if lesser.has_ports else 0
        looked_at |= VOLUMES if lesser.has_volumes else 0
        for step in self._others:
            # A plugin that counts pods in its term may have counted any.
            if step.shifted & looked_at or (step.counting is not None and step.sifting is not None):
                more = trial.quotas(step, lesser.departed())
                if more is None:
                    return None
                found += more
        return found


def victims(
    waiting: Sequence[PlacedPod], room: Room, quotas: Sequence[Quota] = ()
) -> list[int] | None:
    """Return the places of those who do not come back, if each does who can, in this order.

    None if a pod takes so much, or less than nothing, that sums may not be what they seem.
    """
    left = dict(room)
    slots = left.pop(POD_SLOTS, len(waiting))
    requests: Requests | None = None
    taken: list[tuple[str, int]] = []
    found: list[int] = []
    shares = _Shares(quotas)
    for place, placed in enumerate(waiting):
        if slots <= 0:
            found.extend(range(place, len(waiting)))
            break
        if not shares.are_left(place):
            found.append(place)
            continue
        if placed.requests is not requests:
            # Replicas come one after the other, and share what they ask for.
            requests = placed.requests
            taken = [asked for asked in requests.amounts if asked[0] in left]
            for _, amount in taken:
                if not 0 <= amount <= LARGEST_EXACT:
                    return None
        for name, amount in taken:
            if amount > left[name]:
                found.append(place)
                break
        else:
            slots -= 1
            shares.take(place)
            for name, amount in taken:
                left[name] -= amount
    return found


class _Shares:
    """How many pods of each quota may still come back."""

    __slots__ = ("_left", "_of_place")

    def __init__(self, quotas: Sequence[Quota]) -> None:
        self._left = [quota.most for quota in quotas]
        self._of_place: dict[int, list[int]] = {}
        for number, quota in enumerate(quotas):
            for place in quota.places:
                self._of_place.setdefault(place, []).append(number)

    def are_left(self, place: int) -> bool:
        mine = self._of_place.get(place)
        return mine is None or all(self._left[number] > 0 for number in mine)

    def take(self, place: int) -> None:
        for number in self._of_place.get(place, ()):
            self._left[number] -= 1


def narrow(room: Room, other: Mapping[str, int]) -> None:
    for resource, amount in other.items():
        room[resource] = min(amount, room.get(resource, amount))
