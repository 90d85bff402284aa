"""`python -m testbed.bench`."""

import sys

from testbed.bench.cli import main

sys.exit(main(sys.argv[1:]))
