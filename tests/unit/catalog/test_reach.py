"""What a token looks back at, against counting token by token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.attending import looks_at, pairs, touched

from sim.catalog.reach import FULL, Reach

sizes = st.integers(1, 40)
reaches = st.one_of(st.just(FULL), sizes.map(lambda w: Reach(window=w)), sizes.map(lambda c: Reach(chunk=c)))


@given(reaches, st.integers(1, 60), st.integers(0, 60))
def test_pairs_and_touched_tokens_of_a_prompt(reach, new, cached):
    assert reach.doubled_pairs(new, cached) == 2 * pairs(new, cached, reach.window, reach.chunk)
    assert reach.touched(new, cached) == touched(new, cached, reach.window, reach.chunk)


@given(reaches, st.integers(1, 100))
def test_what_the_last_token_sees(reach, tokens):
    assert reach.seen(tokens) == len(looks_at(tokens - 1, reach.window, reach.chunk))


@given(reaches, st.integers(1, 60), st.integers(1, 60), st.integers(0, 60))
def test_a_prompt_in_two_parts_is_a_prompt(reach, first, second, cached):
    whole = reach.doubled_pairs(first + second, cached)
    assert whole == reach.doubled_pairs(first, cached) + reach.doubled_pairs(second, cached + first)


@given(reaches, st.integers(0, 200))
def test_held_is_enough_for_what_is_seen(reach, tokens):
    assert reach.seen(tokens) <= reach.held(tokens) <= tokens


@pytest.mark.parametrize(
    ("reach", "held"),
    [(FULL, 1000), (Reach(window=128), 128), (Reach(chunk=300), 300), (Reach(chunk=2000), 1000)],
)
def test_a_thousand_tokens(reach, held):
    assert reach.held(1000) == held
