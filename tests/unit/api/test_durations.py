"""Durations are read and written as Go does."""

import pytest

from k8s_scheduler.api.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15.0),
        ("5m0s", 300.0),
        ("1h", 3600.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("100ms", 0.1),
        ("0.1s", 0.1),
        ("2us", 2e-6),
        ("2\u00b5s", 2e-6),
        ("2\u03bcs", 2e-6),
        ("7ns", 7e-9),
        ("0", 0.0),
        ("0s", 0.0),
        ("-10s", -10.0),
        ("+10s", 10.0),
        ("-0", 0.0),
        ("0" * 5000 + "15s", 15.0),
        ("1." + "0" * 5000 + "s", 1.0),
        ("0." + "9" * 5000 + "s", 0.999999999),
    ],
)
def test_reads_what_go_reads(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "15", "s", ".s", "15 s", "15sec", "1d", "5m 0s", "-", "+", "1..5s", "9999999999h"),
        *("9" * 5000 + "s", "9" * 5000 + "h1s", "\u0661s", "1.\u0665s"),
    ],
)
def test_refuses_what_go_refuses(text):
    with pytest.raises(ValueError, match=r'is not a duration; write it like "15s"'):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (15, "15s"),
        (300, "5m0s"),
        (3600, "1h0m0s"),
        (5401.5, "1h30m1.5s"),
        (0.25, "250ms"),
        (0.0015, "1.5ms"),
        (2e-6, "2\u00b5s"),
        (7e-9, "7ns"),
        (1.000000001, "1.000000001s"),
        (0, "0s"),
        (-10, "-10s"),
    ],
)
def test_writes_as_go_writes(seconds, text):
    assert format_duration(seconds) == text
    assert parse_duration(text) == pytest.approx(seconds)
