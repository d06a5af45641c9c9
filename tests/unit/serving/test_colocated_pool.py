"""Colocated replicas by pencil and paper, beside other pools, and memory that is reserved before a prompt."""

from dataclasses import replace

from models.colocating import TIMING, colocated, served, times
from models.play import pool, seat

from sim.serving.plan import HostTimes, RouterPlan


def test_a_prompt_goes_before_decode():
    """The second arrives in a step from 20 to 120: its prompt takes the 20 after it, and both decode then."""
    found, _ = served(colocated("prefill_first"), (0, 10, 3), (50, 10, 2))
    assert times(found) == [(20, 120, 240), (140, 240, 240)]


def test_a_chunk_goes_beside_decode():
    """Of 20 tokens a step has 8: the one that decodes takes one, so the prompt of 10 goes in 7 and 3."""
    found, played = served(colocated("chunked", max_batch_tokens=8), (0, 8, 4), (50, 10, 2))
    # 18 | decode to 118 | 7 of the prompt beside: 17 | 3 of it: 13 | a step
    assert times(found) == [(18, 118, 148), (148, 248, 248)]
    assert played.segments["batch"].tolist() == [1, 1, 1, 1]


def test_a_static_batch_waits_until_the_last_is_done():
    found, _ = served(colocated("static"), (0, 10, 4), (0, 10, 2), (40, 10, 1))
    assert times(found) == [(30, 130, 330), (30, 130, 130), (350, -1, 350)]


def test_the_host_takes_its_time():
    host = HostTimes(prefill_ps=3, step_ps=2, change_ps=4)
    found, _ = served(colocated("prefill_first", host=host), (0, 10, 3))
    assert times(found) == [(23, 23 + 106, 23 + 106 + 102)]


def test_who_finds_no_page_is_put_aside_and_computed_anew():
    """Two prompts of 8 take 4 of 5 pages of 4: one may grow, so the later one gives way and comes back."""
    serve = colocated("prefill_first", kv_tokens=20, reserves_whole=False)
    found, played = served(serve, (0, 8, 5), (0, 8, 3))
    # Both prompts to 26; the second gives way; the first is done at 426; 8 + 1 tokens anew, then a step.
    assert times(found) == [(26, 126, 426), (26, 445, 545)]
    assert [row["phase_preempted_ps"] for row in found] == [0, 445 - 26]
    [replica] = played.serving.colocated.replicas
    assert (replica.preemptions, replica.requests, replica.tokens) == (1, 2, 5 + 3)
    assert (replica.steps, replica.decoded) == (5, 5)
    assert replica.busy_ps == 545


def test_a_watermark_keeps_room_for_those_who_run():
    serve = colocated("prefill_first", kv_tokens=20, reserves_whole=False, spare_tokens=5)
    found, _ = served(serve, (0, 8, 5), (0, 8, 3))
    assert [row["phase_preempted_ps"] for row in found] == [0, 0]
    assert found[1]["phase_queue_ps"] == found[0]["finished_ps"]


def test_a_sequence_that_never_fits_is_turned_away():
    found, played = served(colocated("prefill_first", kv_tokens=20), (0, 8, 5), (0, 16, 5))
    assert found[1]["finished_ps"] == -1
    assert played.serving.rejected == {"sequence larger than the KV memory of a colocated replica": 1}


def test_short_prompts_go_to_colocated_replicas():
    apart = {
        "prefill": pool("prefill", [seat(1)], TIMING, 1000),
        "decode": pool("decode", [seat(2)], TIMING, 1000),
    }
    limit = RouterPlan("least_loaded", "least_loaded", 1.0, colocated_tokens=10)
    found, _ = served(colocated("chunked"), (0, 10, 3), (0, 11, 3), router=limit, **apart)
    # Colocated replicas are counted on from those that do one thing only.
    assert [(row["prefill_replica"], row["decode_replica"]) for row in found] == [(1, 1), (0, 0)]
    assert [row["phase_transfer_ps"] for row in found] == [0, 11]
    even, played = served(colocated("chunked"), *[(0, 10, 3)] * 6, **apart)
    assert [row["prefill_replica"] for row in even].count(1) == 2  # of three GPUs it has one
    assert (played.serving.dispatch.colocated, played.serving.dispatch.apart) == (0, 0)


def test_decode_memory_is_reserved_before_the_prompt_is_computed():
    """There is room for one sequence: the second prompt is not computed before the first request is done."""
    apart = {
        "prefill": pool("prefill", [seat(1)], TIMING, 1000),
        "decode": pool("decode", [seat(2)], TIMING, 16),
    }
    late, _ = served(None, (0, 8, 3), (0, 8, 3), **apart)
    early, _ = served(None, (0, 8, 3), (0, 8, 3), reserves_first=True, **apart)
    assert late[0]["finished_ps"] == 26 + 8 + 200  # both prompts in one batch, a transfer, two steps
    assert early[0]["finished_ps"] == 18 + 8 + 200
    assert (late[1]["phase_route_ps"], early[1]["phase_route_ps"]) == (0, early[0]["finished_ps"])
    assert early[1]["phase_reserve_ps"] == 0
    assert late[1]["phase_reserve_ps"] > 0


def test_sending_keeps_the_host_and_staging_the_transfer():
    """Prompts of 8, one a batch: 18, then 5 + 8 x 1.5 to send; a transfer takes 3 + 8 x 0.5 and its 8."""
    host = HostTimes(send_ps=5, send_token_ps=1.5)
    apart = {
        "prefill": replace(pool("prefill", [seat(1)], TIMING, 1000, max_batch_tokens=1), host=host),
        "decode": pool("decode", [seat(2)], TIMING, 1000),
    }
    found, played = served(None, (0, 8, 3), (0, 8, 1), handoff_start_ps=3, handoff_token_ps=0.5, **apart)
    assert [row["first_token_ps"] for row in found] == [18, 18 + 17 + 18]
    assert found[0]["phase_transfer_ps"] == 3 + 4 + 8
    assert played.serving.prefill.replicas[0].busy_ps == 2 * (18 + 17)
