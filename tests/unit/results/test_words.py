"""Numbers as people read them."""

from __future__ import annotations

import pytest

from sim.results.words import count_short, number, percent, seconds, verdict


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (0.0123, "0.012"),
        (0.9996, "1.00"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (1234.5, "1 234"),
        (1_234_567, "1 234 567"),
    ],
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (None, "–"),
        (0, "0 %"),
        (1, "100 %"),
        (0.5, "50 %"),
        (0.9964, "99.6 %"),
        (0.9996, "99.96 %"),
        (0.004, "0.4 %"),
        (0.00004, "0.004 %"),
    ],
)
def test_percent_never_says_all_or_nothing_where_it_is_not(fraction, text):
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("value_s", "text"), [(None, "–"), (0, "0 s"), (2e-7, "0.200 us"), (0.0123, "12.3 ms"), (75.0, "75.0 s")]
)
def test_seconds(value_s, text):
    assert seconds(value_s) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (999_999, "999 999"), (13_200_000, "13.2 M"), (2.5e9, "2.50 G")]
)
def test_count_short(value, text):
    assert count_short(value) == text


def entry(value_s, is_met, limit="ttft p90 < 500 ms", limit_s=0.5):
    return {
        "limit": limit,
        "metric": "ttft",
        "statistic": "p90",
        "limit_s": limit_s,
        "value_s": value_s,
        "is_met": is_met,
        "missing": 0,
    }


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (entry(0.412, True), "ttft p90    412 ms < 500 ms"),
        (entry(0.5001, False), "ttft p90  500.100 ms < 500 ms"),
        (entry(0.5, False), "ttft p90    500 ms < 500 ms"),
        (entry(None, False), "ttft p90     never < 500 ms"),
        (entry(None, None), "ttft p90  nothing measured < 500 ms"),
        (entry(1.5, True, "ttft p90 <= 2 s", 2.0), "ttft p90    1.50 s <= 2 s"),
    ],
)
def test_verdict(given, text):
    assert verdict(given) == text
