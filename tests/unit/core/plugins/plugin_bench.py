"""One plugin on a small cluster: what it says of each node, asked as the framework asks it.

    bench = PluginBench(made("NodeName"), make_node("a"), make_node("b"))
    assert bench.rejections(pod) == [None, ("node(s) didn't match the requested node name", False)]

Pods and nodes are builders, or dictionaries as the API server sends them.
"""

from typing import Any

import msgspec
import numpy as np

from k8s_scheduler.api.kinds import kind_named
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Same
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading


def made(name: str, **args: Any) -> Any:
    """Return a built-in plugin with these arguments."""
    return BUILT_INS[name].make(args)


class PluginBench:
    """A plugin, and nodes in the order given."""

    def __init__(self, plugin: Any, *nodes: Any) -> None:
        self.plugin = plugin
        self.cache = Cache()
        self.verdicts = VerdictTable()
        self.node(*nodes)

    # What is there

    def node(self, *nodes: Any) -> Any:
        for node in nodes:
            self.cache.put_node(_wire(node, Node))
        return self

    def remove(self, name: str) -> Any:
        self.cache.remove_node(NodeName(name))
        return self

    def place(self, *pods: Any) -> Any:
        """Let pods run on the nodes they name."""
        for pod in pods:
            self.cache.put_bound(_wire(pod, Pod))
        return self

    def put(self, *objects: dict[str, Any]) -> Any:
        """Let there be other objects, each with its `kind`."""
        for raw in objects:
            kind = kind_named(raw["kind"])
            found = msgspec.convert(raw, kind.type)
            metadata = found.metadata
            self.cache.objects.put(kind, metadata.namespace, metadata.name, found)
        return self

    def view(self, *names: str, delta: Any = None, times: Any = None) -> RowsView:
        """Return what the plugin sees of these nodes, or of all."""
        rows = [self.cache.nodes.row_of(NodeName(name)) for name in names]
        return RowsView(
            self.cache,
            np.array(rows) if names else self.cache.nodes.present_rows(),
            reader=Reading(self.plugin.name, Declarations(self.plugin.depends_on)),
            verdicts=self.verdicts,
            delta=delta,
        ).seen_as(multiplicity=None if times is None else np.array(times))

    # PreFilter and Filter

    def prepare(self, pod: Any) -> Any:
        return self.plugin.prepare(pod_view(pod), self.view())

    def skips(self, pod: Any) -> bool:
        """Return whether the plugin has nothing to say of any node."""
        return self.prepare(pod) is SKIP

    def refusal(self, pod: Any) -> str:
        """Return why the pod is refused before any node is looked at."""
        prepared = self.prepare(pod)
        assert isinstance(prepared, Reject)
        assert not prepared.resolvable
        return prepared.reasons[0].text

    def narrowed(self, pod: Any) -> tuple[str, ...]:
        """Return the nodes to which the search is narrowed."""
        prepared = self.prepare(pod)
        assert isinstance(prepared, Narrow)
        return prepared.names

    def rejections(self, pod: Any, *names: str) -> list[Any]:
        """Return for each node None, or its reasons and whether preemption could resolve them."""
        prepared = self.prepare(pod)
        assert prepared is not SKIP
        return self.judge(prepared.term if isinstance(prepared, Narrow) else prepared, *names)

    def judge(self, prepared: Any, *names: str, delta: Any = None) -> list[Any]:
        codes = self.plugin.filter(prepared, self.view(*names, delta=delta)).tolist()
        verdicts = [self.verdicts[code] if code else None for code in codes]
        return [v and (*[r.text for r in v.reasons], v.resolvable) for v in verdicts]

    # PreScore, Score and NormalizeScore

    def pre_score(self, pod: Any, *names: str) -> Any:
        return self.plugin.pre_score(pod_view(pod), self.view(*names))

    def raw_scores(self, pod: Any, *names: str, times: Any = None) -> list[int] | None:
        """Return the score of each node before it is normalised; None if the plugin has no say."""
        view = self.view(*names, times=times)
        term = self.plugin.pre_score(pod_view(pod), view)
        return None if term is SKIP else self._scores(term, view).tolist()

    def scores(self, pod: Any, *names: str) -> list[int] | None:
        """Return the score of each node as the profile weighs it; None if there is no say."""
        view = self.view(*names)
        term = self.plugin.pre_score(pod_view(pod), view)
        if term is SKIP:
            return None
        scores = self._scores(term, view)
        if hasattr(self.plugin, "normalize") and not isinstance(term, Same):
            scores = self.plugin.normalize(scores)
        return scores.tolist()

    def _scores(self, term: Any, view: RowsView) -> Any:
        is_same = isinstance(term, Same)
        return np.full(len(view), term.score) if is_same else self.plugin.score(term, view)


def pod_view(pod: Any) -> PodView:
    return PodView(_wire(pod, Pod))


def _wire(thing: Any, kind: type[Any]) -> Any:
    return msgspec.convert(thing, kind) if isinstance(thing, dict) else thing.obj()
