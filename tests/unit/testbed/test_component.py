import pytest

from testbed.component import Component, tail
from testbed.errors import ComponentError
from testbed.layout import Layout


@pytest.fixture
def layout(tmp_path) -> Layout:
    state = Layout(tmp_path / "state")
    state.make_folders()
    return state


@pytest.fixture
def make(layout):
    made: list[Component] = []

    def component(script: str) -> Component:
        made.append(Component("etcd", ["/bin/sh", "-c", script], layout=layout, owned=False))
        return made[-1]

    yield component
    for each in made:
        if each._child is not None:
            each._child.kill()
            each.reap()


def test_death_at_start_is_told_with_the_code_and_the_last_lines(make):
    component = make("echo first; echo bind: address in use >&2; exit 3")
    component.start()
    component._child.wait()
    with pytest.raises(ComponentError, match=r"etcd died at start with code 3") as caught:
        component.wait_ready(lambda: "no answer")
    assert str(caught.value).endswith("first\nbind: address in use")


def test_taking_too_long_is_told_with_what_is_wrong(make):
    component = make("echo busy; exec sleep 60")
    component.start()
    with pytest.raises(ComponentError, match=r"not ready after 0 s: 500: not yet"):
        component.wait_ready(lambda: "500: not yet", timeout_seconds=0)


def test_ready_at_once_needs_no_waiting(make):
    component = make("exec sleep 60")
    component.start()
    component.wait_ready(lambda: "")
    assert component.is_running


def test_starting_twice_is_refused(make):
    component = make("exec sleep 60")
    component.start()
    with pytest.raises(ComponentError, match="etcd runs already"):
        component.start()


def test_component_that_is_down_is_said_to_be_down(make):
    with pytest.raises(ComponentError, match="etcd is down"):
        make("exit 0").wait_ready(lambda: "no answer")


def test_callers_environment_does_not_steer_components(make, layout, monkeypatch):
    monkeypatch.setenv("ETCD_DATA_DIR", "/precious")
    component = make('echo "[$ETCD_DATA_DIR] $TMPDIR"')
    component.start()
    component.reap()
    assert layout.log("etcd").read_text() == f"[] {layout.scratch}\n"


class TestTail:
    """The end of a log, in a size people read."""

    def test_shows_the_last_lines_cut_to_width(self, tmp_path):
        log = tmp_path / "log"
        log.write_text("".join(f"line {n} {'x' * 100}\n" for n in range(50)))
        assert tail(log, lines=2, width=7) == "line 48\nline 49"

    def test_says_when_there_is_nothing(self, tmp_path):
        assert tail(tmp_path / "none") == "(no log)"
        (tmp_path / "empty").touch()
        assert tail(tmp_path / "empty") == "(empty)"
