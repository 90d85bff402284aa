"""The replicas' configuration file, exchanged as a ConfigMap mount is: at once, through a link."""

import hashlib
import random
import time
from collections.abc import Callable
from pathlib import Path

from testbed.chaos.evidence import Configuration

_HEAD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
# All of these decide the same way as far as room goes; what differs is how well they choose.
_GOOD = (
    "percentageOfNodesToScore: 0\n",
    "percentageOfNodesToScore: 100\n",
    "podMaxBackoffSeconds: 5\n",
)
_BAD = (
    "percentageOfNodesToScore: 101\n",
    "podInitialBackoffSeconds: -1\n",
    "noSuchField: true\n",
    "profiles: [\n",
)


class ConfigurationMount:
    """A folder in which `config.yaml` is reached through a link that is exchanged."""

    def __init__(
        self, folder: Path, *, scheduler: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._scheduler = scheduler
        self._clock = clock
        self.written: list[Configuration] = []
        folder.mkdir(parents=True, exist_ok=True)
        self.write_good(random.Random(0))
        (folder / "config.yaml").symlink_to("..data/config.yaml")

    @property
    def file(self) -> Path:
        """The file that replicas are told of."""
        return self._folder / "config.yaml"

    def write_good(self, draw: random.Random) -> str:
        """Put one of the good configurations there; return what makes it differ."""
        choice = draw.choice(_GOOD)
        profiles = f"profiles:\n  - schedulerName: {self._scheduler}\n"
        self._exchange(f"{_HEAD}{choice}{profiles}", good=True)
        return choice.strip()

    def write_bad(self, draw: random.Random) -> str:
        """Put one of the bad configurations there; return what is wrong with it."""
        choice = draw.choice(_BAD)
        self._exchange(_HEAD + choice, good=False)
        return choice.strip()

    def _exchange(self, text: str, *, good: bool) -> None:
        # A number in the text: each is another one, even where it means the same.
        number = len(self.written) + 1
        text = f"# {number}\n{text}"
        version = f"..version-{number}"
        (self._folder / version).mkdir()
        (self._folder / version / "config.yaml").write_text(text, encoding="utf-8")
        fresh = self._folder / "..data.new"
        fresh.symlink_to(version)
        fresh.replace(self._folder / "..data")
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.written.append(Configuration(self._clock(), digest, good))
