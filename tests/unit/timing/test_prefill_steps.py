"""Prefills from a table: at its points, between them, at its edges and outside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.config.device import PrefillStep
from sim.timing.prefillsteps import PrefillSteps, pairs, place, shrunk

PAIR, BASE, TOKEN = 900.0, 3e9, 2e7  # picoseconds


def law_ps(prompts, new, cached):
    """A cost of the model's own form: base, tokens, pairs, and a prefix that costs by length and queries."""
    return BASE + prompts * (
        TOKEN * new + PAIR * pairs(new) + (PAIR * new * cached + 5e4 * cached if cached else 0)
    )


def row(prompts, new, cached, time_ps=None):
    return PrefillStep(
        prompts=prompts, new=new, cached=cached, median_us=(time_ps or law_ps(prompts, new, cached)) / 1e6
    )


def roof(chunks):
    """Another provider: half the time, and bent otherwise."""
    tokens = sum(new for new, _ in chunks)
    return round(
        1e9
        + 1.1e7 * tokens
        + sum(300 * pairs(new) + 400 * new * cached + 4e4 * cached for new, cached in chunks)
    )


FRESH = [row(1, new, 0) for new in (16, 128, 1024, 4096)]
PREFIXED = [row(1, new, cached) for new in (64, 1024) for cached in (512, 8192)]
BATCHED = [row(8, 128, 0), row(4, 1024, 0)]
STEPS = PrefillSteps([*FRESH, *PREFIXED, *BATCHED], roof)


def test_single_prompts_are_told_exactly():
    for one in FRESH:
        assert STEPS.prefill_ps([(one.new, 0)]) == pytest.approx(one.median_ps, rel=1e-12)


def test_prefixes_are_told_exactly():
    for one in PREFIXED:
        assert STEPS.prefill_ps([(one.new, one.cached)]) == pytest.approx(one.median_ps, rel=1e-12)


def test_what_prompts_save_by_not_meeting_is_found_in_batches():
    assert STEPS.pair_ps == pytest.approx(PAIR, rel=0.05)
    assert STEPS.error.points == 10
    assert STEPS.error.worst < 0.01


@given(st.lists(st.tuples(st.integers(64, 1024), st.integers(0, 8192)), min_size=1, max_size=4))
def test_a_law_of_the_model_s_own_form_is_met_everywhere_inside(chunks):
    wanted = BASE + sum(law_ps(1, new, cached) - BASE for new, cached in chunks)
    assert STEPS.covers(chunks) == (sum(new for new, _ in chunks) <= 4096)
    assert STEPS.prefill_ps(chunks) == pytest.approx(wanted, rel=0.02)


def test_between_prompts_it_is_piecewise_quadratic():
    exact = PrefillSteps(
        [*FRESH, row(4, 1024, 0, law_ps(1, 4096, 0) - PAIR * (pairs(4096) - 4 * pairs(1024)))], roof
    )
    assert exact.pair_ps == pytest.approx(PAIR, rel=1e-6)
    for new in (17, 500, 2000, 4095):
        assert exact.prefill_ps([(new, 0)]) == pytest.approx(law_ps(1, new, 0), rel=1e-6)


def test_without_batches_the_other_provider_tells_the_time_of_a_pair():
    assert PrefillSteps(FRESH, roof).pair_ps == pytest.approx(300, rel=1e-3)


@pytest.mark.parametrize("edge", [(16, 0), (4096, 0), (1024, 8192), (64, 512), (1024, 512)])
def test_it_is_continuous_at_the_edges(edge):
    new, cached = edge
    there = STEPS.prefill_ps([edge])
    for more_new in (-1, 0, 1):
        for more_cached in (-1, 0, 1) if cached else (0,):
            near = STEPS.prefill_ps([(new + more_new, cached + more_cached)])
            assert near == pytest.approx(there, rel=0.02)


def test_a_longer_prompt_is_the_other_provider_s_in_proportion():
    assert not STEPS.covers([(10_000, 0)])
    wanted = STEPS.prefill_ps([(4096, 0)]) * roof([(10_000, 0)]) / roof([(4096, 0)])
    assert STEPS.prefill_ps([(10_000, 0)]) == pytest.approx(wanted)


def test_a_batch_of_many_tokens_keeps_its_proportions():
    wanted = STEPS.prefill_ps([(1024, 0), (3072, 0)]) * roof([(3000, 0), (9000, 0)])
    wanted /= roof([(1024, 0), (3072, 0)])
    assert STEPS.prefill_ps([(3000, 0), (9000, 0)]) == pytest.approx(wanted)


def test_a_longer_prefix_adds_what_it_does_elsewhere_in_proportion():
    def added(new, cached):
        return roof([(new, cached)]) - roof([(new, 0)])

    base = STEPS.prefill_ps([(1024, 0)])
    wanted = base + (STEPS.prefill_ps([(1024, 8192)]) - base) * added(1024, 30_000) / added(1024, 8192)
    assert not STEPS.covers([(1024, 30_000)])
    assert STEPS.prefill_ps([(1024, 30_000)]) == pytest.approx(wanted)


def test_without_prefixes_in_the_table_they_scale_with_the_prompt():
    steps = PrefillSteps([*FRESH, *BATCHED], roof)
    assert not steps.covers([(1024, 1)])
    base = steps.prefill_ps([(1024, 0)])
    added = roof([(1024, 2048)]) - roof([(1024, 0)])
    assert steps.prefill_ps([(1024, 2048)]) == pytest.approx(base + added * base / roof([(1024, 0)]))


def test_a_prefix_that_some_prompts_lack_is_left_out_of_the_grid():
    rows = [*FRESH, *PREFIXED, row(1, 64, 65_536)]
    assert PrefillSteps(rows, roof).prefixes.cached == [512, 8192]


def test_one_prompt_makes_a_table():
    steps = PrefillSteps([row(1, 512, 0)], roof)
    assert steps.prefill_ps([(512, 0)]) == pytest.approx(law_ps(1, 512, 0))
    assert steps.prefill_ps([(1024, 0)]) == pytest.approx(
        law_ps(1, 512, 0) * roof([(1024, 0)]) / roof([(512, 0)])
    )


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30), st.integers(1, 4000))
def test_prompts_shrink_to_what_fits(prompts, edge):
    found = shrunk(prompts, sum(prompts), edge)
    assert sum(found) == edge
    assert min(found) > 0


def test_places_between_marks():
    assert place([0, 10, 30], 0) == (0, 0.0)
    assert place([0, 10, 30], 20) == (1, 0.5)
    assert place([0, 10, 30], 30) == (1, 1.0)
    assert place([7], 99) == (0, 0.0)
