"""A prefill replica: who is computed when, to the picosecond."""

from models.play import plan, play, pool, seat
from models.rebuild import rows
from models.wires import OwnWires

from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

TIMING = FixedTiming(prefill_base_ps=100, prefill_per_token_ps=1, decode_base_ps=1)


def prefilled(requests, kv_tokens=1000, budget=20, latency_ps=0, **changes):
    """Start and end of each prompt's prefill, by request, on one replica."""
    one = plan(
        pool("prefill", [seat(0)], TIMING, kv_tokens, max_batch_tokens=budget),
        pool("decode", [seat(1)], TIMING, 10**6),
        **changes,
    )
    offered = [Request(number, *parts) for number, parts in enumerate(requests)]
    found = {}
    for row in rows(play(one, offered, OwnWires(latency_ps)).requests):
        started = row["arrived_ps"] + row["phase_queue_ps"]
        found[row["request_id"]] = (started, started + row["phase_prefill_ps"])
    return [found[number] for number in range(len(requests))]


def test_a_prompt_alone_starts_at_once():
    assert prefilled([(7, 5, 1)]) == [(7, 112)]


def test_prompts_of_one_instant_share_a_batch():
    assert prefilled([(7, 5, 1), (7, 6, 1)]) == [(7, 118), (7, 118)]


def test_prompts_wait_for_the_batch_before():
    assert prefilled([(0, 5, 1), (1, 6, 1), (2, 7, 1)]) == [(0, 105), (105, 218), (105, 218)]


def test_a_batch_takes_what_fits_the_budget_in_order():
    """20 tokens: 12 and 8 fit; 9 waits, and 1 waits behind it."""
    requests = [(0, 12, 1), (0, 8, 1), (0, 9, 1), (0, 1, 1)]
    assert prefilled(requests) == [(0, 120), (0, 120), (120, 230), (120, 230)]


def test_a_prompt_larger_than_the_budget_runs_alone():
    assert prefilled([(0, 50, 1), (0, 1, 1)]) == [(0, 150), (150, 251)]


def test_an_arrival_at_the_end_of_a_batch_joins_the_next():
    assert prefilled([(0, 5, 1), (105, 6, 1)]) == [(0, 105), (105, 211)]


def test_full_memory_stops_admission_until_a_handoff_is_done():
    """16 tokens of memory: the second prompt waits until the KV of the first, 12 bytes, has crossed."""
    requests = [(0, 12, 2), (0, 8, 2)]
    assert prefilled(requests, kv_tokens=16) == [(0, 112), (124, 232)]
    assert prefilled(requests, kv_tokens=16, latency_ps=50) == [(0, 112), (174, 282)]


def test_a_replica_woken_in_vain_is_woken_again():
    """The first handoff frees too little for the prompt that waits; the second frees enough."""
    requests = [(0, 8, 2), (0, 12, 2), (1, 20, 2)]
    assert prefilled(requests, kv_tokens=20) == [(0, 120), (0, 120), (132, 252)]


def test_memory_is_counted_in_whole_blocks():
    """Five blocks of four tokens: prompts of 9 and 9 take three blocks each, so the second waits."""
    assert prefilled([(0, 9, 1), (0, 9, 1)], kv_tokens=23) == [(0, 109), (109, 218)]
    assert prefilled([(0, 9, 1), (0, 9, 1)], kv_tokens=24) == [(0, 118), (0, 118)]


def test_cached_tokens_are_not_computed_again():
    blocks = (1, 2, 3)
    requests = [(0, 12, 1, blocks), (200, 12, 1, blocks), (400, 10, 1, (1, 2, 9))]
    found = prefilled(requests, reuse=True)
    assert found == [(0, 112), (200, 301), (400, 502)]


def test_without_reuse_everything_is_computed():
    blocks = (1, 2, 3)
    assert prefilled([(0, 12, 1, blocks), (200, 12, 1, blocks)]) == [(0, 112), (200, 312)]


def test_the_budget_counts_new_tokens_only():
    """Sixteen of 17 are cached: three such prompts fit a budget of three, and a fourth one waits."""
    blocks = (1, 2, 3, 4)
    requests = [(0, 16, 1, blocks), *((500, 17, 1, (*blocks, 10 + i)) for i in range(4))]
    found = prefilled(requests, reuse=True, budget=3)
    assert found[1:] == [(500, 603), (500, 603), (500, 603), (603, 704)]


def test_prompts_too_large_for_the_memory_are_rejected_not_stuck():
    one = plan(
        pool("prefill", [seat(0)], TIMING, 20),
        pool("decode", [seat(1)], TIMING, 30),
    )
    requests = [Request(0, 0, 21, 1), Request(1, 0, 20, 9), Request(2, 0, 20, 8)]
    played = play(one, requests, OwnWires(0))
    assert played.serving.rejected == {
        "prompt larger than the KV memory of a prefill replica": 1,
        "sequence larger than the KV memory of a decode replica": 1,
    }
    assert [(row["request_id"], row["finished_ps"] >= 0) for row in rows(played.requests)] == [
        (0, False),
        (1, False),
        (2, True),
    ]
