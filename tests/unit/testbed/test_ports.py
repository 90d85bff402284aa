import random
import socket

import pytest

from testbed import ports
from testbed.errors import TestbedError
from testbed.ports import choose_ports


@pytest.fixture
def ephemeral(tmp_path, monkeypatch):
    """Let the kernel hand out ports from here on to outgoing connections."""

    def begin_at(port: int) -> None:
        (tmp_path / "range").write_text(f"{port}\t60999\n")
        monkeypatch.setattr(ports, "_RANGE_FILE", tmp_path / "range")

    return begin_at


def test_ports_are_distinct_and_below_those_of_outgoing_connections(ephemeral):
    ephemeral(20_000)
    chosen = choose_ports(50, rng=random.Random(1))
    assert len(set(chosen)) == 50
    assert all(15_000 <= port < 20_000 for port in chosen)


def test_ports_of_other_beds_and_of_listeners_are_left_alone():
    first = choose_ports(2, rng=random.Random(7))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", first[0]))
        listener.listen()
        again = choose_ports(2, taken={first[1]}, rng=random.Random(7))
    assert not set(again) & set(first)


def test_machine_that_gives_all_ports_to_clients_still_gets_ports(ephemeral):
    ephemeral(1024)
    assert len(choose_ports(3, rng=random.Random(1))) == 3


def test_no_free_port_is_an_error_that_names_the_range(monkeypatch):
    monkeypatch.setattr(ports, "_is_free", lambda _: False)
    with pytest.raises(TestbedError, match="between 15000 and"):
        choose_ports(1)
