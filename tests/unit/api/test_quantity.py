"""Quantities are exact, and rounded up once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from k8s_scheduler.api.quantity import QuantityError, milli, nano, whole


@pytest.mark.parametrize(
    ("text", "in_milli", "in_whole"),
    [
        ("0", 0, 0),
        ("1", 1000, 1),
        ("100m", 100, 1),
        ("1500m", 1500, 2),
        ("0.5", 500, 1),
        (".5", 500, 1),
        ("1.", 1000, 1),
        ("1.G", 10**12, 10**9),
        ("2k", 2 * 10**6, 2000),
        ("1Ki", 1024 * 1000, 1024),
        ("0.1Ki", 102400, 103),
        ("1.5Gi", 1610612736 * 1000, 1610612736),
        ("1E", 10**21, 10**18),
        ("1E3", 10**6, 1000),
        ("1e-3", 1, 1),
        ("12e6", 12 * 10**9, 12 * 10**6),
        ("1n", 1, 1),
        ("0.1n", 1, 1),
        ("1u", 1, 1),
        ("+5", 5000, 5),
        ("8Ei", 2**63 - 1, 2**63 - 1),
        (3, 3000, 3),
        (0.25, 250, 1),
    ],
)
def test_value(text, in_milli, in_whole):
    assert whole(nano(text)) == in_whole
    assert milli(nano(text)) == min(in_milli, 2**63 - 1)


@pytest.mark.parametrize(
    "text",
    [
        *("", "m", "1K", "1 k", "one", "1x", "1e", "--1", "1.2.3", ".", "1Mi5", "1e99999", "½"),
        "9" * 5000,
        "0." + "0" * 5000 + "1",
        "\u0967",
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_quantity_is_refused_by_name(text):
    with pytest.raises(QuantityError, match="is not a quantity"):
        nano(text)


@given(
    number=st.decimals(0, 10**6, places=3),
    suffix=st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]),
)
def test_agrees_with_the_kubernetes_package(number, suffix):
    text = f"{number}{suffix}"
    assert nano(text) == parse_quantity(text) * 10**9


def test_an_error_does_not_repeat_all_of_what_is_wrong():
    with pytest.raises(QuantityError) as raised:
        nano("9" * 1_000_000)
    assert len(str(raised.value)) < 300


def test_sums_are_rounded_once():
    assert milli(nano("0.5m") + nano("0.5m")) == 1
