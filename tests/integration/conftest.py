"""Beds for integration tests: the real API server, shared by the session, a namespace per test.

These tests run only when asked for (`pytest tests/integration`): `testpaths` leaves them out.
Whatever has to be built is built before the first test, with its progress on the terminal and
outside every test's time-out.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.bed import Bed
from testbed.binaries import COMPONENTS, find_tools
from testbed.options import CONTROLLER_MANAGER, KWOK, BedOptions
from testbed.sandbox import Sandbox

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    if any(_HERE in item.path.parents for item in session.items):
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            find_tools(COMPONENTS)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Bed]:
    """etcd, API server with audit log, controller manager. No kubelet: bound pods stay Pending."""
    with Bed(BedOptions(components=(CONTROLLER_MANAGER,), audit=True)) as bed:
        yield bed


@pytest.fixture(scope="session")
def kwok_plane() -> Iterator[Bed]:
    """The same with kwok: nodes keep their heartbeat, bound pods run, deleted pods go."""
    with Bed(BedOptions(components=(CONTROLLER_MANAGER, KWOK), audit=True)) as bed:
        yield bed


@pytest.fixture
def sandbox(control_plane: Bed) -> Iterator[Sandbox]:
    """A namespace of the test's own on `control_plane`; what it makes is removed afterwards."""
    with Sandbox(control_plane) as corner:
        yield corner


@pytest.fixture
def kwok_sandbox(kwok_plane: Bed) -> Iterator[Sandbox]:
    """A namespace of the test's own on `kwok_plane`; what it makes is removed afterwards."""
    with Sandbox(kwok_plane) as corner:
        yield corner


@pytest.fixture
def namespace(sandbox: Sandbox) -> str:
    """The name of the test's own namespace on `control_plane`."""
    return sandbox.namespace
