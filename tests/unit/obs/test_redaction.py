"""No secret leaves in a log line, whoever wrote it and however it is quoted."""

import io
import json
import logging
import sys
import threading
import time

import pytest

from k8s_scheduler.obs import logging as logs
from k8s_scheduler.obs import redaction
from k8s_scheduler.obs.redaction import conceal, redact

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0abc.c2lnbmF0dXJl"
PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\nIKz0\n-----END EC PRIVATE KEY-----"


@pytest.fixture(autouse=True)
def _clean():
    yield
    logs.reset()
    redaction._known.clear()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
        ("{'authorization': 'bearer abcdef0123456789'}", "abcdef0123456789"),
        ("Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        (f"it was {JWT}, see", "c2lnbmF0dXJl"),
        ("cannot connect to https://me:hunter22@proxy:3128/x", "hunter22"),
        ("cannot connect to http://me:hunter@22@proxy:3128/x", "22@"),
        ("https://only-a-token@host", "only-a-token"),
        (f"bad key {PEM} there", "IKz0"),
        (PEM.replace("\n", "\\n"), "IKz0"),
        (PEM[:50], "MHcC"),
        ('{"token": "abc-def-ghi"}', "abc-def-ghi"),
        (r"{\"id-token\": \"abc-def-ghi\"}", "abc-def-ghi"),
        ("refresh_token=abc-def-ghi&x=y", "abc-def-ghi"),
        ("client-key-data: QUJDREVGRw==", "QUJDREVGRw"),
        ("password: hunter22", "hunter22"),
        ("client_secret='hunter22'", "hunter22"),
    ],
)
def test_what_looks_like_a_secret_goes(text, secret):
    assert secret in text
    assert secret not in redact(text)
    assert redaction.REDACTED in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "the token holds characters that no header may hold",
        "invalid bearer token",
        "tokens: none",
        'missing permission: create tokenreviews.authentication.k8s.io: User "a" cannot create',
        "Successfully assigned default/a to n1",
        "https://10.0.0.1:6443/api/v1/pods?watch=1",
        "pods@example.com is no URL",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_what_is_none_stays(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece",
    ["a-", "eyJ-", "eyJa.", "token ", "token:", "://a", "-----BEGIN PRIVATE KEY-----", "bearer "],
)
def test_no_line_takes_longer_than_it_is_long(piece):
    """The time per character stays the same: a line ten times as long takes some ten times."""

    def seconds(length):
        text = piece * (length // len(piece))
        best = float("inf")
        for _ in range(5):
            started = time.process_time()
            redact(text)
            best = min(best, time.process_time() - started)
        return best

    assert seconds(100_000) < 60 * max(seconds(10_000), 1e-4)


def test_known_secrets_go_whatever_they_look_like():
    conceal("correct horse")
    assert redact("no: correct horse!") == "no: <redacted>!"


def test_short_ones_would_take_the_log_with_them():
    conceal("pod")
    assert redact("pod ns/a") == "pod ns/a"


def test_only_the_last_few_are_known():
    for number in range(1000):
        conceal(f"secret-{number}")
    assert len(redaction._known) == 32
    assert "secret-999" not in redact("secret-999")


@pytest.mark.parametrize("form", logs.FORMATS)
def test_messages_fields_and_tracebacks_are_all_cleaned(form):
    conceal("planted-secret")
    stream = io.StringIO()
    logs.configure(form, 10, stream=stream)
    logger = logging.getLogger("k8s_scheduler.test")
    error = ValueError(f"choked on planted-secret and {PEM} and Bearer {JWT}")
    fields = {"planted-secret": [PEM]}
    logger.error("planted-secret %s", "planted-secret", exc_info=error, extra={"fields": fields})
    logging.getLogger("aiohttp.server").error(
        "Bad request", extra={"fields": {"h": f"Bearer {JWT}"}}
    )
    text = stream.getvalue()
    for secret in ("planted-secret", "IKz0", "c2lnbmF0dXJl"):
        assert secret not in text
    assert "choked on" in text
    if form == "json":
        assert [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", ["requests_oauthlib.oauth2_session", "oauthlib", "urllib3.x"])
def test_libraries_that_log_tokens_have_no_debug_lines(name):
    stream = io.StringIO()
    logs.configure("text", 10, stream=stream)
    logging.getLogger(name).debug("Obtained tokens: %s", "abc")
    assert stream.getvalue() == ""
    logging.getLogger(name).warning("but this")
    assert "but this" in stream.getvalue()


def test_the_hooks_of_others_are_put_back():
    before = sys.excepthook, threading.excepthook
    logs.configure("text", 0, stream=io.StringIO())
    logs.configure("json", 0, stream=io.StringIO())
    assert sys.excepthook is not before[0]
    logs.reset()
    assert (sys.excepthook, threading.excepthook) == before


def test_what_nobody_caught_is_cleaned_too():
    conceal("planted-secret")
    stream = io.StringIO()
    logs.configure("text", 0, stream=stream)
    error = ValueError("planted-secret")
    sys.excepthook(ValueError, error, None)
    threading.excepthook(threading.ExceptHookArgs((ValueError, error, None, None)))
    assert stream.getvalue().count("Uncaught error") == 2
    assert "planted-secret" not in stream.getvalue()
