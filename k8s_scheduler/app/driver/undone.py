"""Pods of which a read, or a restored storage, shows something else than the watch has told.

A pod that was read and was gone is remembered until the watch tells of it.

A pod that is bound stays bound until it is gone. Only where the storage was restored from an older
snapshot is it shown without a node again, under the same uid:

    shown unbound after bound ──▶ gone for the core, and come again: it waits, its room is free
         │ a request of ours may yet bind it: a bind is under way, or one that was in doubt for a
         │ while has ended shortly before (`kube/write/unsettled.py`)
         ▼
      held back ──the bind failed for certain──▶ gone, and come again
         │ the bind succeeded: before the restore, or after it? nothing of it can land any more
         ▼
       read ──unbound──▶ gone, and come again      ──bound──▶ told as it is      ──none──▶ gone

The core alone can't tell: to it a version without a node may simply be an older one, of which the
watch tells late. A pod that comes back from its end, or that the core has had read unbound, is held
back in the same way.

Those that it knows to be bound although the watch has never shown it (they were
read) are read again as well (`suspect`).
"""

import itertools
from collections.abc import Callable
from typing import Final

import msgspec

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.outgoing import ReadPod
from k8s_scheduler.kube.write.pod_reader import ReadOutcome

# The watch has told of most pods before they are read: the last of them are enough.
_MOST_GONE: Final = 1024


class _Doubt(msgspec.Struct):
    """A pod as it was last shown, and what its end waits for."""

    pod: Pod
    # The number of the reading that counts; 0 while a request of ours may yet bind it.
    token: int = 0


class Undone:
    """All of them, by pod."""

    def __init__(
        self,
        *,
        may_land: Callable[[PodUid], bool],
        read: Callable[[ReadPod], None],
        tell: Callable[[PodUid, Pod | None], None],
    ) -> None:
        self._may_land = may_land
        self._read = read
        self._tell = tell
        self._doubts: dict[PodUid, _Doubt] = {}
        # Oldest first.
        self._read_gone: dict[PodUid, None] = {}
        # Below zero: attempts of the core are counted above.
        self._tokens = itertools.count(-1, -1)

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._doubts or uid in self._read_gone

    def clear(self) -> None:
        self._doubts.clear()
        self._read_gone.clear()

    def read_gone(self, uid: PodUid) -> None:
        self._read_gone[uid] = None
        if len(self._read_gone) > _MOST_GONE:
            del self._read_gone[next(iter(self._read_gone))]

    def changed(self, old: Pod | None, new: Pod | None) -> bool:
        """Take what the watch tells; return whether the core need not be told of it as it is."""
        known = new or old
        if known is not None and self._read_gone:
            self._read_gone.pop(PodUid(known.metadata.uid), None)
        if new is None:
            return False
        uid = PodUid(new.metadata.uid)
        doubt = self._doubts.get(uid)
        if new.spec.node_name:
            if doubt is not None:
                del self._doubts[uid]
            return False
        if doubt is not None:
            doubt.pod = new
            if doubt.token:
                # What is being read may be older than this.
                doubt.token = next(self._tokens)
            return True
        if old is not None and not old.spec.node_name:
            return False
        if self._may_land(uid):
            self._doubts[uid] = _Doubt(new)
        elif old is None:
            return False
        else:
            self._come_again(new)
        return True

    def gone(self, uid: PodUid) -> None:
        self._doubts.pop(uid, None)

    def bind_ended(self, uid: PodUid, *, bound: bool) -> None:
        """Take the end of a bind; after the core was told of it."""
        doubt = self._doubts.get(uid)
        if doubt is None or doubt.token or self._may_land(uid):
            return
        if bound:
            self._ask(doubt)
        else:
            del self._doubts[uid]
            self._come_again(doubt.pod)

    def suspect(self, pod: Pod) -> None:
        """Read a pod that the core knows otherwise than the watch has shown it."""
        uid = PodUid(pod.metadata.uid)
        if uid not in self._doubts:
            doubt = self._doubts[uid] = _Doubt(pod)
            if not self._may_land(uid):
                self._ask(doubt)

    def remind(self) -> None:
        """Ask about those of which a reading has come to nothing, or that are settled by now."""
        for uid, doubt in self._doubts.items():
            if doubt.token or not self._may_land(uid):
                self._ask(doubt)

    def was_read(self, outcome: ReadOutcome) -> bool:
        """Take a pod that was read; False if it was not for us."""
        pod = outcome.pod
        if pod is None:
            self.read_gone(outcome.uid)
        if pod is not None and not pod.spec.node_name and self._may_land(outcome.uid):
            self._doubts.setdefault(outcome.uid, _Doubt(pod)).token = 0
            return True
        doubt = self._doubts.get(outcome.uid)
        if doubt is None or not doubt.token or doubt.token != outcome.attempt:
            return False
        del self._doubts[outcome.uid]
        if pod is not None and not pod.spec.node_name:
            self._come_again(pod)
        else:
            self._tell(outcome.uid, pod)
        return True

    def _ask(self, doubt: _Doubt) -> None:
        metadata = doubt.pod.metadata
        if not doubt.token:
            doubt.token = next(self._tokens)
        uid = PodUid(metadata.uid)
        self._read(
            ReadPod(uid=uid, namespace=metadata.namespace, name=metadata.name, attempt=doubt.token)
        )

    def _come_again(self, pod: Pod) -> None:
        uid = PodUid(pod.metadata.uid)
        self._tell(uid, None)
        self._tell(uid, pod)
