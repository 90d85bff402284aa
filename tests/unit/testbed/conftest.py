"""Stand-ins for what the bed finds on a machine: a Go that compiles by copying, a screen."""

import io
import stat
from pathlib import Path

import pytest

GO_MOD = """module example/controlplane

go 1.26.0

require (
\tgo.etcd.io/etcd/server/v3 v3.7.0
\tk8s.io/kubernetes v1.37.1
)

require sigs.k8s.io/kwok v0.8.0 // indirect
"""

# Logs how it is called; `build -o DIR/ PACKAGE...` writes one file per package, `-o FILE` that one.
FAKE_GO = """#!/bin/sh
echo "$*" >> "{log}"
case "$1 $2" in
  "env GOVERSION") echo "{version}" ;;
  "list -deps") echo "go: downloading a v1" >&2; printf 'one\\ntwo\\nthree\\n' ;;
  "mod download") echo '{{"Dir": "{kwok}"}}' ;;
  "build -v")
    if [ -e "{broken}" ]; then
      printf 'one\\n# two\\nmain.go:3: undefined: nothing\\n' >&2; exit 1
    fi
    printf 'one\\ntwo\\n' >&2
    while [ "$1" != -o ]; do shift; done
    out=$2; shift 2
    for package; do
      case $package in .) name=controlplane ;; *) name=$(basename "$package") ;; esac
      case $out in */) file=$out$name ;; *) file=$out ;; esac
      echo "#!/bin/sh" > "$file"
    done ;;
esac
"""

STAGES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-complete",
    "pod/fast/pod-delete",
)


class FakeGo:
    """A `go` command on PATH, and what it was called with."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "go-bin"
        self.kwok = root / "kwok-module"
        self._log = root / "go.log"
        self._broken = root / "broken"
        self.bin.mkdir()
        for stage in STAGES:
            file = self.kwok / "kustomize" / "stage" / f"{stage}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"kind: Stage\nmetadata: {{name: {file.stem}}}\n")
        self.say_version("go1.26.8")

    def say_version(self, version: str) -> None:
        """Have it answer with another version."""
        text = FAKE_GO.format(log=self._log, version=version, kwok=self.kwok, broken=self._broken)
        make_program(self.bin / "go", text)

    def break_compiler(self) -> None:
        """Have every build fail."""
        self._broken.touch()

    def repair_compiler(self) -> None:
        """Have builds work again."""
        self._broken.unlink()

    @property
    def calls(self) -> list[str]:
        """Every call so far."""
        return self._log.read_text().splitlines() if self._log.exists() else []


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def make_program(path: Path, text: str) -> Path:
    """Write an executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def program():
    return make_program


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def module_dir(tmp_path: Path) -> Path:
    """A Go module with the three files a build key is made of."""
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text(GO_MOD)
    (folder / "go.sum").write_text("sums\n")
    (folder / "main.go").write_text("package main\n")
    return folder


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """A machine whose only Go is a fake one."""
    go = FakeGo(tmp_path)
    monkeypatch.setenv("PATH", f"{go.bin}:/usr/bin:/bin")
    return go
