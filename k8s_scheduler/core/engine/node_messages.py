"""Takes in what the core is told of nodes."""

from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.checks.overfilled import Overfilled
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.telling import unreadable
from k8s_scheduler.core.messages.incoming import NodeChanged, Recount
from k8s_scheduler.core.messages.outgoing import Log, Severity


class NodeMessages:
    """Handles the messages about nodes."""

    def __init__(self, state: CoreState, overfilled: Overfilled) -> None:
        self._state = state
        self._cache = state.cache
        self._overfilled = overfilled

    def changed(self, message: NodeChanged) -> None:
        if message.node is None:
            self._state.limiting.node_left(message.name)
            self._cache.remove_node(message.name)
            self._overfilled.node_left(message.name)
            return
        row = self._cache.nodes.row_of(message.name)
        before = None if row is None else self._cache.nodes.node_at(row)
        node = self._state.limiting.node(message.node)
        try:
            self._cache.put_node(node)
        except QuantityError as error:
            self._state.out.append(unreadable("node", message.name, error))
            return
        self._overfilled.node_seen(node, before)

    def recount(self, message: Recount) -> None:
        """Add up anew what pods take on some nodes."""
        table = self._cache.nodes
        last = min(message.first + message.count, table.row_count)
        for row, name in table.used_rows():
            if message.first <= row < last and self._cache.recount(row):
                self._state.meter.metrics.cache_differences.labels("amounts").inc()
                line = Log(Severity.ERROR, "what pods take was counted wrong", {"node": name})
                self._state.out.append(line)
