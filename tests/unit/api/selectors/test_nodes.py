"""How values of node selectors are read."""

import pytest

from k8s_scheduler.api.selectors.nodes import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("-0", 0),
        ("0" * 6000 + "7", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_base_ten_numbers_of_64_bits(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        *("", "+", "-", "--7", "1.5", "1e3", "0x7", "1_000", " 7", "7 ", "²", "\u0667"),
        "9223372036854775808",
        "-9223372036854775809",
        # Python refuses to read so many.
        "9" * 5000,
        "-" + "9" * 5000,
    ],
    ids=lambda text: text[:24] or "nothing",
)
def test_anything_else_is_no_number(text):
    assert whole_number(text) is None
