"""What drivers have to attach for the pods of a row: by name, and how many by driver.

A pod that its author put on a node may use tens of thousands of claims, and a plugin that wants to
know what is attached there would look at each of them, again and again. Here they are looked at
once, when a row is asked about; from then on, what pods that come and go use is added and taken
away, and a claim is looked at again only if it, its volume or its class changed. Nothing is held of
rows that were not asked about.

A row with a claim that is not its pod's own, or a disk that can't be translated, is not told of:
that fails the cycle of the pod that asks, and which of them does depends on their order.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod_volumes import Volume
from k8s_scheduler.api.storage.claims import claim_of
from k8s_scheduler.api.storage.csi_translation import TranslationError
from k8s_scheduler.api.storage.objects import PersistentVolumeClaim
from k8s_scheduler.core.state.objects import ObjectStore
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.volumes.handles import (
    NO_DRIVER,
    driver_of_claim,
    driver_of_disk,
    unique_name,
)
from k8s_scheduler.core.state.volumes.user import VolumeUser
from k8s_scheduler.lib.hollow import compact

_Key: TypeAlias = tuple[str, str]
# Name and driver of a volume; both empty if no driver has to do with it.
_Named: TypeAlias = tuple[str, str]
# A volume or a class that a claim's meaning was read from.
_Behind: TypeAlias = tuple[Kind, str]


class RowVolumes:
    """What is attached on one row for its pods; `by_driver` is the number of different ones."""

    __slots__ = ("_uses", "by_driver", "has_trouble")

    def __init__(self) -> None:
        # By name: the driver, and how many uses there are.
        self._uses: dict[str, tuple[str, int]] = {}
        self.by_driver: dict[str, int] = {}
        # Whether its pods have to be looked at one by one: see the module.
        self.has_trouble = False

    def __contains__(self, name: str) -> bool:
        return name in self._uses

    def uses(self, name: str) -> int:
        return self._uses[name][1] if name in self._uses else 0

    def take(self, named: _Named | None, count: int = 1) -> None:
        if named is None:
            self.has_trouble = True
            return
        name, driver = named
        if not name:
            return
        known, uses = self._uses.get(name, (driver, 0))
        if known != driver:
            # Two drivers, and names that come out alike: which one counts depends on the order.
            self.has_trouble = True
            return
        self._uses[name] = (driver, uses + count)
        if not uses:
            self.by_driver[driver] = self.by_driver.get(driver, 0) + 1

    def release(self, named: _Named | None, count: int = 1) -> None:
        """Count fewer uses of a volume; not where the count is of no use any more."""
        if named is None or not named[0] or self.has_trouble:
            return
        name, driver = named
        uses = self.uses(name) - count
        if uses > 0:
            self._uses[name] = (driver, uses)
            return
        del self._uses[name]
        self._uses = compact(self._uses)
        self.by_driver[driver] -= 1
        if not self.by_driver[driver]:
            del self.by_driver[driver]


class FewerVolumes:
    """What would be attached on a row without some of its pods."""

    __slots__ = ("_found", "_gone", "by_driver")

    def __init__(self, found: RowVolumes, gone: Mapping[_Named, int]) -> None:
        self._found = found
        self._gone = {
            name: None for (name, _), count in gone.items() if name and count >= found.uses(name)
        }
        self.by_driver = dict(found.by_driver)
        for name, driver in gone:
            if name in self._gone:
                self.by_driver[driver] -= 1

    def __contains__(self, name: str) -> bool:
        return name in self._found and name not in self._gone


@dataclass(slots=True)
class _Claim:
    """What a claim stands for, what that was read from, and its users on rows of interest."""

    named: _Named = NO_DRIVER
    behind: tuple[_Behind, ...] = ()
    rows: dict[NodeRow, int] = field(default_factory=dict)
    # Those of its users that it was made for, or should have been; there seldom are any.
    owners: dict[tuple[NodeRow, PodUid], VolumeUser] | None = None


class AttachedVolumes:
    """Rows that were asked about, and the claims of the pods on them."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._rows: dict[NodeRow, RowVolumes] = {}
        self._claims: dict[_Key, _Claim] = {}
        self._behind: dict[_Behind, dict[_Key, None]] = {}

    def on(self, row: NodeRow, users: Mapping[PodUid, VolumeUser]) -> RowVolumes | None:
        """Return what is attached for the pods of a row; None if each has to be looked at."""
        found = self._rows.get(row)
        if found is None:
            found = RowVolumes()
            if users:
                self._rows[row] = found
                for user in users.values():
                    self._take(row, found, user)
        return None if found.has_trouble else found

    def without(self, found: RowVolumes, gone: Iterable[VolumeUser]) -> FewerVolumes:
        fewer: dict[_Named, int] = {}
        for user in gone:
            for key, disk, _ in _uses_of(user):
                named = disk if key is None else self._claims[key].named
                if named is not None:
                    fewer[named] = fewer.get(named, 0) + 1
        return FewerVolumes(found, fewer)

    def clear(self) -> list[NodeRow]:
        """Forget everything, and return of which rows: changes there are not seen any more."""
        rows = list(self._rows)
        self._rows, self._claims, self._behind = {}, {}, {}
        return rows

    # Pods

    def came(self, row: NodeRow, user: VolumeUser) -> None:
        """Count what a pod uses, if its row was asked about."""
        found = self._rows.get(row)
        if found is not None:
            self._take(row, found, user)

    def left(self, row: NodeRow, user: VolumeUser, others: Mapping[PodUid, VolumeUser]) -> None:
        """Count what a pod used no more; `others` are still there."""
        found = self._rows.get(row)
        if found is None:
            return
        self._release(row, found, user)
        if found.has_trouble or not others:
            self._forget(row, others)

    def _take(self, row: NodeRow, found: RowVolumes, user: VolumeUser) -> None:
        for key, disk, is_owner in _uses_of(user):
            if key is None:
                found.take(disk)
                continue
            claim = self._claims.get(key)
            if claim is None:
                claim = self._claims[key] = _Claim()
                self._look_at(key, claim)
            claim.rows[row] = claim.rows.get(row, 0) + 1
            found.take(claim.named)
            if is_owner:
                claim.owners = claim.owners or {}
                claim.owners[row, user.uid] = user
                self._look_at_owner(key, found, user)

    def _release(self, row: NodeRow, found: RowVolumes, user: VolumeUser) -> None:
        for key, disk, _ in _uses_of(user):
            if key is None:
                found.release(disk)
                continue
            claim = self._claims[key]
            found.release(claim.named)
            claim.rows[row] -= 1
            if not claim.rows[row]:
                del claim.rows[row]
            if claim.owners:
                claim.owners.pop((row, user.uid), None)
            if not claim.rows:
                self._stand_behind(key, claim, ())
                del self._claims[key]
        self._claims = compact(self._claims)

    def _forget(self, row: NodeRow, users: Mapping[PodUid, VolumeUser]) -> None:
        """Let go of a row; it is looked at again when it is asked about."""
        found = self._rows.pop(row)
        for user in users.values():
            self._release(row, found, user)

    # Objects

    def object_changed(self, kind: Kind, namespace: str, name: str) -> list[NodeRow]:
        """Take note of a change; return the rows for whose pods something else is attached now."""
        if not self._claims:
            return []
        if kind is Kind.PERSISTENT_VOLUME_CLAIM:
            keys = [(namespace, name)] if (namespace, name) in self._claims else []
        else:
            keys = list(self._behind.get((kind, name), ()))
        changed: dict[NodeRow, None] = {}
        for key in keys:
            changed.update(self._look_again(key, self._claims[key]))
        return list(changed)

    def forget_troubled(self, row: NodeRow, users: Mapping[PodUid, VolumeUser]) -> None:
        """Let a row be looked at anew if something was wrong with it: it may be right by now."""
        found = self._rows.get(row)
        if found is not None and found.has_trouble:
            self._forget(row, users)

    def _look_again(self, key: _Key, claim: _Claim) -> dict[NodeRow, None]:
        before = claim.named
        self._look_at(key, claim)
        changed: dict[NodeRow, None] = {}
        if claim.named != before:
            for row, count in claim.rows.items():
                self._rows[row].release(before, count)
                self._rows[row].take(claim.named, count)
                changed[row] = None
        for (row, _), user in (claim.owners or {}).items():
            found = self._rows[row]
            had_trouble = found.has_trouble
            self._look_at_owner(key, found, user)
            if found.has_trouble or had_trouble:
                changed[row] = None
        return changed

    def _look_at(self, key: _Key, claim: _Claim) -> None:
        read: dict[_Behind, None] = {}

        def get(kind: Kind, namespace: str, name: str) -> Any:
            read[kind, name] = None
            return self._objects.get(kind, namespace, name)

        found: PersistentVolumeClaim | None = self._objects.get(Kind.PERSISTENT_VOLUME_CLAIM, *key)
        driver, handle = NO_DRIVER
        if found is not None:
            driver, handle = driver_of_claim(found, get, on_csi_node=True)
        claim.named = (unique_name(driver, handle), driver) if driver and handle else NO_DRIVER
        self._stand_behind(key, claim, tuple(read))

    def _look_at_owner(self, key: _Key, found: RowVolumes, user: VolumeUser) -> None:
        claim: PersistentVolumeClaim | None = self._objects.get(Kind.PERSISTENT_VOLUME_CLAIM, *key)
        if claim is not None and not user.controls(claim.metadata):
            found.has_trouble = True

    def _stand_behind(self, key: _Key, claim: _Claim, behind: tuple[_Behind, ...]) -> None:
        for what in claim.behind:
            if what not in behind:
                del self._behind[what][key]
                self._behind[what] = compact(self._behind[what])
                if not self._behind[what]:
                    del self._behind[what]
        for what in behind:
            self._behind.setdefault(what, {})[key] = None
        if not behind and claim.behind:
            self._behind = compact(self._behind)
        claim.behind = behind


def _uses_of(user: VolumeUser) -> Iterator[tuple[_Key | None, _Named | None, bool]]:
    """Yield the claims that a pod uses, and whether they are made for it; or its disks.

    None stands for what no pod can use.
    """
    for volume in user.volumes:
        used = claim_of(volume, user)
        if used is None:
            yield None, _disk(volume), False
        elif used.name:
            yield (user.namespace, used.name), NO_DRIVER, used.ephemeral
        else:
            yield None, None, False


def _disk(volume: Volume) -> _Named | None:
    try:
        driver, handle = driver_of_disk(volume, on_csi_node=True)
    except TranslationError:
        return None
    return (unique_name(driver, handle), driver) if driver else NO_DRIVER
