"""What is kept of kin: of which, and for how long.

As with shapes: from the second pod on, the least recently used is dropped when there are too many,
and what can't be kept is not tried again for a while. Pods whose labels differ share what is kept
if they answer alike all that was asked to make it.
"""

from typing import Final

from k8s_scheduler.core.engine.shapes.evaluation import NO_LABELS
from k8s_scheduler.core.engine.shapes.partial_evaluation import OneOff, RejectedError
from k8s_scheduler.core.engine.shapes.partial_shape import Kin
from k8s_scheduler.core.engine.shapes.promises import Promises
from k8s_scheduler.core.engine.shapes.row_column_pool import RowParts
from k8s_scheduler.core.engine.shapes.tally import NotKeptError, Tally, count_error
from k8s_scheduler.core.framework.evaluation.runtime import Nominated, Runtime
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.shapes import LONGEST_BYTES
from k8s_scheduler.core.framework.views.answers import Answers, Inquiry
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import Tables

_KINS: Final = 64
# As many that were seen once, or can't be kept, are remembered.
_SEEN: Final = 4096
# An entry of these at most.
_SEEN_BYTES: Final = 256 + LONGEST_BYTES
# Pods of kin that can't be kept come and go before it is tried again.
_PATIENCE: Final = 256

# A profile, and what kin have in common besides their labels.
_Kinship = tuple[str, bytes]
_Key = tuple[_Kinship, Answers]


class KinCache:
    """The kin that keep coming."""

    def __init__(self, state: Tables, runtime: Runtime, row_parts: RowParts, tally: Tally) -> None:
        self._state = state
        self._runtime = runtime
        self._row_parts = row_parts
        self._tally = tally
        # In the order of their last use.
        self._kins: dict[_Key, Kin] = {}
        # What was asked to make these.
        self._inquiries: dict[_Kinship, Inquiry] = {}
        # How many more are passed over before one is kept.
        self._seen: dict[_Key, int] = {}

    def __len__(self) -> int:
        return len(self._kins)

    @property
    def nbytes(self) -> int:
        """How much memory they take, with all that is kept to find them."""
        return sum(kin.nbytes for kin in self._kins.values()) + _SEEN_BYTES * len(self._seen)

    def clear(self) -> None:
        """Forget everything."""
        self._kins.clear()
        self._inquiries.clear()
        self._seen.clear()

    def drop(self, profile: Profile, queued: QueuedPod) -> None:
        """Forget the kin of a pod, with all that others share with them."""
        kin = self._kins.pop(self._key(profile, queued), None)
        if kin is not None:
            kin.give_up()

    def drop_oldest(self) -> bool:
        """Forget those that were not asked about for longest; return whether there were any."""
        if not self._kins:
            return False
        oldest = next(iter(self._kins))
        del self._kins[oldest]
        self._forget_inquiry(oldest[0])
        return True

    def find(
        self, profile: Profile, queued: QueuedPod, watch: Watch | None, nominated: Nominated
    ) -> OneOff | None:
        """Return what is said of a pod; None if its kin are not known or it is rejected at once.

        By row, the pods `nominated` there count for this one.
        """
        key = self._key(profile, queued)
        try:
            kin = self._caught_up(key, profile, queued, watch) or self._made(key, profile, queued)
            if kin is None:
                return None
            promises = None
            if nominated:
                promises = Promises(self._state, self._runtime, profile, nominated)
            found = OneOff(
                self._state,
                self._runtime,
                queued.view,
                labels=kin.labels,
                kin=kin,
                watch=watch,
                promises=promises,
            )
        except (NotKeptError, PluginError) as error:
            count_error(self._tally.refused, error)
            self._kins.pop(key, None)
            self._remember(self._key(profile, queued), _PATIENCE)
            return None
        except RejectedError:
            return None
        self._tally.akin += 1
        return found

    def _caught_up(
        self, key: _Key, profile: Profile, queued: QueuedPod, watch: Watch | None
    ) -> Kin | None:
        """Return what is kept of a pod's kin; None if that is to be made anew."""
        kin = self._kins.pop(key, None)
        if kin is None:
            return None
        asked = self._inquiries[key[0]].questions.count
        try:
            kin.catch_up(profile, queued.view, watch)
        except (NotKeptError, PluginError) as error:
            count_error(self._tally.renewed, error)
            self._seen[key] = 0
            return None
        if self._inquiries[key[0]].questions.count == asked:
            self._kins[key] = kin
            return kin
        if kin.labels != queued.shape.labels:
            # Of the pods that share it, only this one is known to answer what was asked just now,
            # and its terms may be another's.
            kin.labels = NO_LABELS
        self._file(profile, queued, kin)
        return kin

    def _made(self, key: _Key, profile: Profile, queued: QueuedPod) -> Kin | None:
        wait = self._seen.get(key)
        if wait is None or wait:
            self._remember(key, 0 if wait is None else wait - 1)
            return None
        inquiry = self._inquiries.get(key[0])
        if inquiry is None:
            inquiry = self._inquiries[key[0]] = Inquiry()
        try:
            kin = Kin(
                self._state,
                self._runtime,
                profile,
                queued.view,
                inquiry.questions,
                labels=queued.shape.labels,
                row_parts=self._row_parts,
            )
        except (NotKeptError, PluginError):
            self._forget_inquiry(key[0])
            raise
        self._file(profile, queued, kin)
        if len(self._kins) > _KINS:
            self.drop_oldest()
        return kin

    def _file(self, profile: Profile, queued: QueuedPod, kin: Kin) -> None:
        """Keep what is said of a pod's kin under what the pod answers."""
        # What was asked just now may drop all others.
        key = self._key(profile, queued)
        self._kins[key] = kin

    def _key(self, profile: Profile, queued: QueuedPod) -> _Key:
        kinship = (profile.scheduler_name, queued.shape.kin)
        inquiry = self._inquiries.get(kinship)
        if inquiry is None:
            return kinship, ()
        if inquiry.renew():
            # Something was asked that no pod was asked before: all have to answer anew.
            self._kins = {key: kin for key, kin in self._kins.items() if key[0] != kinship}
        return kinship, inquiry.answers(self._state, queued.pod, queued.shape.labels)

    def _forget_inquiry(self, kinship: _Kinship) -> None:
        """Forget what was asked, unless something is still kept by the answers."""
        if all(key[0] != kinship for key in self._kins):
            self._inquiries.pop(kinship, None)

    def _remember(self, key: _Key, wait: int) -> None:
        self._seen[key] = wait
        if len(self._seen) > _SEEN:
            del self._seen[next(iter(self._seen))]
