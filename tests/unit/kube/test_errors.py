"""An answer that is no success becomes an exception, whatever its body is."""

import pytest

from k8s_scheduler.kube.errors import Conflict, ServerError
from k8s_scheduler.kube.http.protocol import Response


def test_a_status_says_why():
    error = Response(409, b'{"reason":"Conflict","message":"changed"}').error()
    assert isinstance(error, Conflict)
    assert str(error) == "409 Conflict: changed"


@pytest.mark.parametrize("body", [b"<html>", b'{"x":' + b"[" * 9999], ids=["no JSON", "deep"])
def test_a_body_that_is_no_status_is_quoted_in_part(body):
    error = Response(502, body).error()
    assert isinstance(error, ServerError)
    assert error.message == body[:200].decode()
