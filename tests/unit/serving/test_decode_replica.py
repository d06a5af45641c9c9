"""A decode replica: when each token comes, to the picosecond, by pencil and paper."""

import pytest
from models.play import plan, play, pool, seat
from models.rebuild import rows, token_times
from models.wires import OwnWires

from sim.timing.fixed import FixedTiming
from sim.workload.request import Request


def decoded(requests, per_token_ps=0, kv_tokens=1000, max_sequences=8, first_by_prefill=True):
    """Token times and rows, by request; a prefill takes 10, a transfer a picosecond a token, a step 100."""
    one = plan(
        pool("prefill", [seat(0)], FixedTiming(prefill_base_ps=10), 10**6),
        pool(
            "decode",
            [seat(1)],
            FixedTiming(decode_base_ps=100, decode_per_token_ps=per_token_ps),
            kv_tokens,
            max_sequences=max_sequences,
        ),
        first_token_by_prefill=first_by_prefill,
    )
    played = play(one, [Request(number, *parts) for number, parts in enumerate(requests)], OwnWires(0))
    found = sorted(rows(played.requests), key=lambda row: row["request_id"])
    segments = rows(played.segments)
    return list(dict(sorted(token_times(found, segments).items())).values()), found, segments


def test_a_sequence_alone_gets_a_token_a_step():
    times, _, segments = decoded([(0, 8, 4)])
    assert times == [[10, 118, 218, 318]]
    assert [(one["started_ps"], one["steps"], one["batch"]) for one in segments] == [(18, 3, 1)]


def test_steps_grow_with_the_context():
    """Contexts 9, 10, 11, at 2 a token."""
    times, _, segments = decoded([(0, 8, 4)], per_token_ps=2)
    assert times == [[10, 18 + 118, 18 + 118 + 120, 18 + 118 + 120 + 122]]
    assert (segments[0]["first_step_ps"], segments[0]["step_growth_ps"]) == (118, 2)


def test_decode_gives_the_first_token_where_prefill_does_not():
    times, found, _ = decoded([(0, 8, 3)], per_token_ps=2, first_by_prefill=False)
    assert times == [[18 + 116, 18 + 116 + 118, 18 + 116 + 118 + 120]]
    assert (found[0]["first_token_ps"], found[0]["second_token_ps"]) == (134, -1)


def test_a_single_token_by_prefill_needs_no_decode():
    times, found, segments = decoded([(0, 8, 1)])
    assert times == [[10]]
    assert segments == []
    assert (found[0]["decode_replica"], found[0]["phase_transfer_ps"]) == (-1, 0)


def test_a_single_token_by_decode_takes_a_step():
    times, _, _ = decoded([(0, 8, 1)], first_by_prefill=False)
    assert times == [[118]]


def test_who_arrives_in_a_step_joins_at_its_end():
    """The second arrives at 138 of a step from 118 to 218, and both then step together."""
    times, found, segments = decoded([(0, 8, 4), (118, 10, 3)])
    assert times == [[10, 118, 218, 318], [128, 318, 418]]
    assert found[1]["phase_decode_queue_ps"] == 218 - 138
    assert [one["batch"] for one in segments] == [1, 2, 1]


@pytest.mark.parametrize(("arrives", "joins"), [(217, 218), (218, 218), (219, 318)])
def test_who_arrives_exactly_on_a_boundary_joins_there(arrives, joins):
    times, found, _ = decoded([(0, 8, 5), (arrives - 20, 10, 3)])
    assert found[1]["phase_decode_queue_ps"] == joins - arrives
    assert times[1][1:] == [joins + 100, joins + 200]


def test_a_full_batch_lets_nobody_in_until_somebody_is_done():
    times, found, segments = decoded([(0, 8, 4), (0, 8, 3), (0, 8, 3)], max_sequences=2)
    assert times == [[10, 118, 218, 318], [10, 118, 218], [10, 318, 418]]
    assert found[2]["phase_decode_queue_ps"] == 200
    assert max(one["batch"] for one in segments) == 2


def test_a_full_batch_is_not_cut_short_by_who_cannot_join():
    _, _, segments = decoded([(0, 8, 10), (50, 8, 10)], max_sequences=1)
    assert [one["steps"] for one in segments] == [9, 9]


def test_memory_is_reserved_for_the_whole_sequence_before_the_transfer():
    """Of 5 pages the first takes 3 (8 + 4 tokens), so the second waits until it is done, then sends."""
    times, found, _ = decoded([(0, 8, 4), (0, 8, 4)], kv_tokens=20)
    assert times[0] == [10, 118, 218, 318]
    assert (found[1]["phase_reserve_ps"], found[1]["phase_transfer_ps"]) == (308, 8)
    assert times[1] == [10, 426, 526, 626]


def test_reservations_are_granted_in_order_even_if_a_later_one_would_fit():
    """The second needs four pages, of which two are free; the third needs one and waits behind it."""
    _, found, _ = decoded([(0, 8, 4), (0, 12, 4), (0, 1, 3)], kv_tokens=20)
    assert [row["phase_reserve_ps"] for row in found] == [0, 308, 308]


def test_sequences_done_together_leave_in_the_order_of_their_ids():
    times, _, _ = decoded([(0, 8, 3), (0, 8, 3), (0, 8, 3)])
    assert times == [[10, 118, 218]] * 3


def test_tokens_and_time_are_accounted_for():
    one = plan(
        pool("prefill", [seat(0)], FixedTiming(prefill_base_ps=10), 10**6),
        pool("decode", [seat(1)], FixedTiming(decode_base_ps=100), 10**6),
    )
    played = play(one, [Request(0, 0, 8, 4), Request(1, 1000, 8, 3)], OwnWires(0))
    [prefill], [decode] = played.serving.prefill.replicas, played.serving.decode.replicas
    assert (prefill.requests, prefill.tokens, prefill.busy_ps) == (2, 16, 20)
    assert (decode.requests, decode.tokens, decode.busy_ps) == (2, 3 + 2, 500)
    assert decode.free_pages == played.serving.decode.capacity_pages
    assert played.serving.live == {}
