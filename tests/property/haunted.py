"""Nodes that do not exist, and pods on them: what makes the table of nodes long, and short again.

Rows are cut off once a single one is free, and room for rows is given back to the last: so that a
history of a few steps has the table grow and become shorter several times.
"""

from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest.mock import patch

from k8s_scheduler.core.state import columns
from k8s_scheduler.core.state.amounts import block as amount_block
from k8s_scheduler.core.state.nodes.node_table import NodeTable
from tests.inside import inside
from tests.property.kept_world import History

GHOSTS = 12


def easily_shortened() -> AbstractContextManager[Any]:
    """Let tables be shortened as soon as half of them is free."""
    stack = ExitStack()
    for place, name in (
        (NodeTable, "SPARED"),
        (columns, "_FIRST_CAPACITY"),
        (amount_block, "_FIRST_ROWS"),
    ):
        stack.enter_context(patch.object(place, name, 1))
    return stack


class Haunted(History):
    """A history of kept evaluations in which pods come to nodes that do not exist, and leave."""

    # How often the table has become shorter, and longer after that.
    shortened = 0
    grown = 0
    was_shortened = False

    def weights(self) -> dict[Any, float]:
        return {**super().weights(), Haunted.haunt: 6, Haunted.lay_ghosts: 7, Haunted.tick: 2}

    def haunt(self) -> None:
        """Put pods on nodes that do not exist."""
        for number in self.rng.sample(range(GHOSTS), k=self.rng.randint(1, GHOSTS)):
            pod = self.create(self.rng.choice(self.templates))
            self.server.watch.pop()
            pod["spec"]["nodeName"] = f"ghost-{number}"
            self.server.put_pod(pod)

    def lay_ghosts(self) -> None:
        """Let all of these pods go, and most often time pass."""
        for pod in list(self.server.pods.values()):
            if pod["spec"].get("nodeName", "").startswith("ghost-"):
                self.server.drop_pod(pod["metadata"]["uid"])
        self.deliver()
        if self.rng.random() < 0.8:
            self.tick()

    def tell(self, message: Any) -> None:
        before = inside(self.core).cache.nodes.row_count
        super().tell(message)
        after = inside(self.core).cache.nodes.row_count
        if after < before:
            self.shortened += 1
            self.was_shortened = True
        elif after > before and self.was_shortened:
            self.grown += 1
            self.was_shortened = False
