"""What came and is gone is given back to the operating system, not only to Python's allocator.

In a process of its own, with the allocator of the image. Small objects that live on in between keep
whole pages: a list of the numbers that became free was enough to keep two thirds of the memory.
"""

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import sys
from tests.bench.memory_returned import CAUSES, World, resident, rounds
world = World(200)
for _ in rounds(world, CAUSES[sys.argv[1]], 1, 0.02):
    pass
base = resident()
((there, after),) = rounds(world, CAUSES[sys.argv[1]], 1, 0.5)
print(base, there, after)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="how much is resident is read from /proc")
@pytest.mark.parametrize("cause", ["names_on_pods", "terms", "labels"])
def test_most_of_it_is_not_resident_any_more(cause):
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, cause],
        env={**os.environ, "PYTHONMALLOC": "malloc"},
        capture_output=True,
        check=True,
        text=True,
    )
    base, there, after = map(int, ended.stdout.split())
    # It is large enough to tell it from chance.
    assert there - base > 8 << 20
    assert after - base < 0.4 * (there - base)
