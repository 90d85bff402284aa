"""A profile with a plugin of the tests' own that does what pods' labels tell it."""

import dataclasses
from typing import Any, ClassVar

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import PluginUse
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.framework.dependencies import Object
from k8s_scheduler.core.framework.plugin import ObjectPatch, PreBinding, Rejection, Wait
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.registry import Registration
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.setup import Setup


class Guard:
    """Does at every point what a pod's labels say; it remembers nothing between messages."""

    name: ClassVar = "Guard"
    reasons: ClassVar = ()
    depends_on: ClassVar = (Object(Kind.STORAGE_CLASS),)
    writes: ClassVar = (Kind.STORAGE_CLASS,)

    def __init__(self) -> None:
        self.waiting: Any = None

    def attach(self, waiting):
        self.waiting = waiting

    def reserve(self, state, pod, rows):
        wish = _wish(pod, "reserve")
        if wish == "no":
            return Rejection((Reason("Guard/No", "not here"),))
        if wish == "fail":
            raise ValueError("cannot reserve")
        state.write("Guard", {"node": rows.name_of(rows.row_ids[0])})
        return None

    def unreserve(self, state, pod):
        group = _wish(pod, "group")
        if group:
            for uid in self._members(group):
                self.waiting.reject(uid, self.name, "the group is incomplete")

    def permit(self, state, pod, node):
        wish, group = _wish(pod, "permit"), _wish(pod, "group")
        if wish == "no":
            return Rejection((Reason("Guard/No", "not yet"),))
        if wish == "wait":
            return Wait(10.0)
        if group:
            others = self._members(group)
            if not others:
                return Wait(20.0)
            for uid in others:
                self.waiting.allow(uid, self.name)
        return None

    def pre_bind(self, state, pod, rows):
        wish = _wish(pod, "prebind")
        assert state.read("Guard")["node"]
        if wish == "write":
            patch = {"metadata": {"labels": {"seen": pod.metadata.name}}}
            return PreBinding(
                (ObjectPatch(Kind.STORAGE_CLASS, "", "mark", patch),), 30.0, "marking"
            )
        if wish == "look":
            return PreBinding((), 30.0, "looking")
        if wish == "fail":
            raise ValueError("cannot pre-bind")
        return None

    def pre_bound(self, state, pod, rows):
        if _wish(pod, "prebind") == "write":
            return True
        return rows.object(Kind.STORAGE_CLASS, "", "mark") is not None

    def post_bind(self, state, pod, node):
        for uid in self.waiting.uids(self.name):
            waits = self.waiting.pod(uid)
            if _wish(waits, "after") == _wish(pod, "app"):
                self.waiting.allow(uid, self.name)

    def _members(self, group):
        uids = self.waiting.uids(self.name)
        return [uid for uid in uids if _wish(self.waiting.pod(uid), "group") == group]


def _wish(pod, key):
    return (pod.metadata.labels or {}).get(key)


def _setup() -> Setup:
    (profile,) = default_configuration(known_plugins()).profiles
    use = (PluginUse("Guard"),)
    points = dict(profile.points)
    for point in ("reserve", "permit", "preBind", "postBind"):
        points[point] = (*points.get(point, ()), *use)
    return Setup(
        profiles=(dataclasses.replace(profile, points=points),),
        queue=QueuePolicy(BackoffPolicy()),
        plugins=BUILT_INS | {"Guard": Registration(Guard)},
    )


SETUP = _setup()
