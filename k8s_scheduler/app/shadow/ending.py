"""The end of a shadow: the report goes into a file, and as a table to standard output.

The file comes first: the reader of standard output may be gone after hours of watching.
"""

import sys
from pathlib import Path

import msgspec

from k8s_scheduler.lib.standard_output import abandon_standard_output
from k8s_scheduler.simulate.shadowing.report import ShadowReport, table


def hand_over(report: ShadowReport, out: Path | None) -> bool:
    """Write the report to a file, if there is one, and as a table; return whether all went well."""
    is_kept = out is None or _is_kept(report, out)
    return _is_printed(report) and is_kept


def _is_kept(report: ShadowReport, out: Path) -> bool:
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    try:
        out.write_bytes(text + b"\n")
    except OSError as error:
        sys.stderr.write(f"{out}: {error.strerror}\n")
        return False
    return True


def _is_printed(report: ShadowReport) -> bool:
    try:
        for line in table(report):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"standard output: {error.strerror}\n")
        abandon_standard_output()
        return False
    return True
