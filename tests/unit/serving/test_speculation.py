"""Drafts that steps verify: how many are right, what steps cost, and one sequence by pencil and paper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.colocating import TIMING, colocated, served, times
from models.play import plan, play, pool, seat
from models.rebuild import rows
from models.wires import OwnWires

from sim.serving.speculation import Calendar, Speculation
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

CHANCES = st.lists(st.sampled_from((0.0, 0.2, 0.5, 0.9, 1.0)), min_size=1, max_size=6).map(tuple)


@pytest.mark.parametrize("drafts", [1, 2, 5])
@pytest.mark.parametrize("chance", [0.3, 0.7, 0.9])
def test_a_step_gives_what_the_closed_form_says(drafts, chance):
    """(1 - p^(k+1)) / (1 - p), and what is drawn has it as its mean, with the right share of each count."""
    speculation = Speculation((chance,) * drafts, 0.0, seed=3)
    expected = (1 - chance ** (drafts + 1)) / (1 - chance)
    assert speculation.mean_tokens == pytest.approx(expected)
    gains = [speculation.course(request, step, 100)[0] for request in range(200) for step in range(100)]
    assert sum(gains) / len(gains) == pytest.approx(expected, rel=0.02)
    for count in range(1, drafts + 2):
        share = chance ** (count - 1) * (1 - chance if count <= drafts else 1)
        assert gains.count(count) / len(gains) == pytest.approx(share, abs=0.012)


@given(CHANCES, st.integers(0, 2**40), st.integers(0, 50), st.integers(1, 300))
def test_a_course_ends_with_the_output(chances, request, first, tokens):
    gains = Speculation(chances, 0.1, seed=1).course(request, first, tokens)
    assert sum(gains) == tokens
    assert all(1 <= gain <= len(chances) + 1 for gain in gains)


@given(CHANCES, st.integers(0, 2**40), st.integers(1, 200), st.data())
def test_who_comes_back_goes_on_where_it_was(chances, request, tokens, data):
    """What the steps of a request give does not depend on when it was put aside in between."""
    speculation = Speculation(chances, 0.1, seed=1)
    whole = speculation.course(request, 0, tokens)
    taken = data.draw(st.integers(0, len(whole) - 1))
    assert speculation.course(request, taken, tokens - sum(whole[:taken])) == whole[taken:]


def test_seeds_and_requests_differ():
    one, other = (Speculation((0.5,) * 4, 0.0, seed) for seed in (1, 2))
    assert one.course(7, 0, 100) == one.course(7, 0, 100)
    assert one.course(7, 0, 100) != other.course(7, 0, 100)
    assert one.course(7, 0, 100) != one.course(8, 0, 100)


def test_a_step_costs_its_tokens_and_its_drafts():
    """Two sequences with two drafts are six tokens; the context is read once; drafts take 20 % of a step."""
    timing = FixedTiming(0, 1, decode_base_ps=100, decode_per_sequence_ps=10, decode_per_token_ps=5)
    table = Speculation((0.5, 0.5), 0.1).table(timing, 2)
    assert table.base_ps == [0, 130 + round(0.2 * 110), 160 + round(0.2 * 120)]
    assert table.per_token_ps == [0, 6, 6]


def test_all_drafts_are_right():
    """Nine tokens after the first one, three in a step: at 20 the prompt is done, then three steps."""
    found, played = served(colocated("prefill_first"), (0, 10, 10), speculation=Speculation((1.0, 1.0), 0.05))
    assert times(found) == [(20, 130, 350)]  # a step is 100 and two drafts of 5
    [replica] = played.serving.colocated.replicas
    assert (replica.steps, replica.decoded, replica.step_tokens, replica.tokens) == (3, 3, 9, 10)


def test_no_draft_is_right():
    """One token a step, and each step is longer."""
    found, _ = served(colocated("prefill_first"), (0, 10, 4), speculation=Speculation((0.0, 0.0), 0.05))
    assert times(found) == [(20, 130, 350)]


def test_a_decode_pool_verifies_too():
    apart = plan(
        pool("prefill", [seat(0)], TIMING, 1000),
        pool("decode", [seat(1)], TIMING, 1000),
        speculation=Speculation((1.0, 1.0), 0.05),
    )
    played = play(apart, [Request(0, 0, 10, 10)], OwnWires(0))
    [row] = rows(played.requests)
    arrived = row["first_token_ps"] + row["phase_transfer_ps"]
    assert row["finished_ps"] == arrived + 3 * 110
    [replica] = played.serving.decode.replicas
    assert (replica.steps, replica.places, replica.tokens) == (3, 3, 9)


def test_a_calendar_forgets_what_does_not_come():
    calendar = Calendar()
    calendar.add(5, [1, 2, 3])
    calendar.add(6, [4, 4])
    calendar.cancel(7, [3])
    assert [calendar.pass_by(step, 1) for step in (5, 6, 7, 8)] == [1, 6, 4, 0]
