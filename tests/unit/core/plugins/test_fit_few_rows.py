"""Few rows are judged without arrays: the codes are the same, given out in the same order."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.core.plugins import node_resources_fit
from k8s_scheduler.core.plugins.node_resources_fit import FitTerm, NodeResourcesFit

AMOUNTS = st.integers(0, 4)
NAMES = ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "example.com/fpga"]


class Rows:
    """Rows that show one block, and give each set of reasons the next code."""

    def __init__(self, block):
        self.shown = block
        self.codes = {}

    def block(self, _families, _resources):
        return self.shown

    def passed(self):
        return np.zeros(self.shown.shape[2], dtype=np.int64)

    def code(self, reasons, *, resolvable):
        return self.codes.setdefault((reasons, resolvable), len(self.codes) + 1)


@st.composite
def cases(draw):
    asked = draw(st.dictionaries(st.sampled_from(NAMES), AMOUNTS))
    term = FitTerm.of(asked.items())
    width = draw(st.integers(0, node_resources_fit.FEW))
    kind = draw(st.sampled_from([np.int64, np.float64]))
    numbers = draw(
        st.lists(
            AMOUNTS,
            min_size=2 * len(term.resources) * width,
            max_size=2 * len(term.resources) * width,
        )
    )
    block = np.array(numbers, dtype=kind).reshape(2, len(term.resources), width)
    return term, block


@given(case=cases())
def test_few_rows_are_judged_as_many_are(case):
    term, block = case
    few, many = Rows(block), Rows(block)
    found = NodeResourcesFit({}).filter(term, few)
    with patch.object(node_resources_fit, "FEW", -1):
        expected = NodeResourcesFit({}).filter(term, many)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    assert few.codes == many.codes
