"""Where a node stands in the tables: one number, which says nothing by itself."""

from typing import NewType

NodeRow = NewType("NodeRow", int)
