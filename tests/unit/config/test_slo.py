from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import ValueProblem
from sim.config.slo import METRICS, OPERATORS, STATISTICS, SloLimit
from sim.tables import metrics

limits = st.builds(
    SloLimit,
    st.sampled_from(METRICS),
    st.sampled_from(STATISTICS),
    st.sampled_from(OPERATORS),
    st.integers(1, 10**17),
)


def test_words_are_those_of_the_tables() -> None:
    assert metrics.LATENCIES == METRICS
    assert metrics.STATISTICS == STATISTICS


@pytest.mark.parametrize(
    ("text", "limit", "canonical"),
    [
        ("ttft p90 < 2 s", SloLimit("ttft", "p90", "<", 2 * 10**12), "ttft p90 < 2 s"),
        ("tpot  p99.9<=40ms", SloLimit("tpot", "p99.9", "<=", 40 * 10**9), "tpot p99.9 <= 40 ms"),
        (" e2e mean < 0.5 min ", SloLimit("e2e", "mean", "<", 30 * 10**12), "e2e mean < 30 s"),
        ("itl max < 1500 ms", SloLimit("itl", "max", "<", 1500 * 10**9), "itl max < 1.5 s"),
    ],
)
def test_parse(text: str, limit: SloLimit, canonical: str) -> None:
    assert SloLimit.parse(text) == limit
    assert limit.text == str(limit) == canonical


@given(limits)
def test_text_parses_to_the_same_limit(limit: SloLimit) -> None:
    assert SloLimit.parse(limit.text) == limit


@pytest.mark.parametrize(
    "value", ["", "ttft p90 2 s", "<", 7, None, ["ttft p90 < 2 s"], "ttft p90 < ", "p90 < 2 s"]
)
def test_what_is_no_limit(value: object) -> None:
    with pytest.raises(ValueProblem) as caught:
        SloLimit.parse(value)
    assert caught.value.hint
