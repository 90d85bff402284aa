"""`make stories`: 40 stories told to kube-scheduler and to this scheduler on one API server.

Exit code 0 only if both said the same after every step of every story, this scheduler at most two
seconds after kube-scheduler. ONLY=text tells those whose name has the text in it.
"""

import argparse
import sys
import time

from testbed.errors import TestbedError
from testbed.stories.library import STORIES
from testbed.stories.schedulers import both_running
from testbed.stories.telling import Teller, Told


def main(arguments: list[str]) -> int:
    """Tell the stories; return the exit code."""
    parser = argparse.ArgumentParser(prog="testbed.stories", description=__doc__)
    parser.add_argument("--only", default="", help="tell the stories with this in their name")
    parser.add_argument(
        "--texts", action="store_true", help="show what was said, not only how it went"
    )
    options = parser.parse_args(arguments)
    chosen = [story for story in STORIES if options.only in story.name]
    bad: list[str] = []
    started = time.monotonic()
    latest = 0.0
    try:
        with both_running() as pair:
            for number, story in enumerate(chosen, 1):
                told = Teller(pair.bed, story).tell()
                problem = next((t.problem for t in told if t.problem), "")
                if problem:
                    bad.append(story.name)
                latest = max(
                    [
                        latest,
                        *(t.ours_seconds - t.theirs_seconds for t in told[1:] if not t.problem),
                    ]
                )
                print(f"{number:3} {'FAIL' if problem else 'same':5} {story.name}", flush=True)
                _show(told, texts=options.texts or bool(problem))
    except TestbedError as error:
        print(f"stories: {error}", file=sys.stderr)
        return 1
    print(
        f"{len(chosen) - len(bad)} of {len(chosen)} stories told alike in "
        f"{time.monotonic() - started:.0f} s; at most {latest:.1f} s later than kube-scheduler"
    )
    return 1 if bad or not chosen else 0


def _show(told: list[Told], *, texts: bool) -> None:
    for step in told:
        print(
            f"      {step.theirs_seconds:5.1f} s {step.ours_seconds:5.1f} s  {step.what}"
            + (f": {step.problem}" if step.problem else "")
        )
        if texts:
            for name, theirs in step.theirs.items():
                print(f"                 kube-scheduler: {name}: {theirs}")
                if step.ours[name] != theirs:
                    print(f"                 k8s-scheduler:  {name}: {step.ours[name]}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
