"""What an informer knows: objects by key, and the handlers told of every change.

Invariants, whatever the server, the network and the order of things do:
* handlers see (None, new), (old, new), (old, None), in order, while the store already holds the
  new state; what they saw, replayed, is the store;
* `old` is what was stored, never what the delete event carried: a handler that counts must get
  back exactly what it counted;
* no update goes across uids: an object that was deleted and made again under the same key is a
  delete of the old and an add of the new one;
* an object of the same resource version and the same content is no change. The version alone does
  not say so: after the storage was restored from a snapshot, numbers are given out a second time.
"""

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeAlias

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.kube.resources import T

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[T | None, T | None], None]


class Store(Generic[T]):
    """The objects of one resource."""

    def __init__(self, plural: str) -> None:
        self._plural = plural
        self._objects: dict[str, T] = {}
        self._handlers: list[Handler[T]] = []
        self.objects: Mapping[str, T] = MappingProxyType(self._objects)

    def add_handler(self, handler: Handler[T]) -> None:
        self._handlers.append(handler)

    def put(self, new: T) -> str:
        key = key_of(new.metadata)
        old = self._objects.get(key)
        if old is not None:
            if old.metadata.uid != new.metadata.uid:
                self.remove(key)
                old = None
            elif old.metadata.resource_version == new.metadata.resource_version and old == new:
                return key
        self._objects[key] = new
        self._tell(key, old, new)
        return key

    def remove(self, key: str) -> None:
        old = self._objects.pop(key, None)
        if old is not None:
            self._tell(key, old, None)

    def keep(self, key: str, *, uid: str) -> None:
        """Take note of an object that is there but cannot be read.

        An older version of it stays: dropping it would free capacity that is still used on its
        node, and a version that is a little old errs on the safe side. What is stored goes only
        if it is known to be another object, of another uid.
        """
        old = self._objects.get(key)
        if old is not None and uid and old.metadata.uid != uid:
            self.remove(key)

    def _tell(self, key: str, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:
                # One handler's mistake about one object must not cost all others their view of
                # the cluster; logger.exception shows where it happened.
                logger.exception(
                    "handler failed", extra={"fields": {"resource": self._plural, "key": key}}
                )
