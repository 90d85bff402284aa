"""Who can connect to which address."""

import errno
import socket

import pytest

from k8s_scheduler.console.listening import listen

needs_both = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")


def answers(host, port):
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


@needs_both
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_all_addresses_are_those_of_both_kinds(address):
    with listen(address, 0) as server:
        port = server.getsockname()[1]
        assert answers("127.0.0.1", port)
        assert answers("::1", port)


@needs_both
@pytest.mark.parametrize(("address", "other"), [("127.0.0.1", "::1"), ("::1", "127.0.0.1")])
def test_one_address_is_that_one(address, other):
    with listen(address, 0) as server:
        port = server.getsockname()[1]
        assert answers(address, port)
        assert not answers(other, port)


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_where_ipv6_is_switched_off_it_is_what_was_asked_for(monkeypatch, number):
    make = socket.create_server

    def create_server(address, **options):
        if options["family"] == socket.AF_INET6:
            raise OSError(number, "off")
        return make(address, **options)

    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: True)
    monkeypatch.setattr(socket, "create_server", create_server)
    with listen("0.0.0.0", 0) as server:
        assert server.getsockname()[0] == "0.0.0.0"


def test_a_port_that_is_taken_is_no_reason_to_be_content_with_less(monkeypatch):
    with listen("0.0.0.0", 0) as server, pytest.raises(OSError, match="in use"):
        listen("0.0.0.0", server.getsockname()[1])
