"""What is said about a trace: its figures, and doubts about its instants."""

import json
import random

import pytest
from workload_parts import DATA, MS, S, write

from sim.base.errors import Advice
from sim.base.streams import Streams
from sim.config.scenario import Workload as WorkloadForm
from sim.workload.build import build_workload
from sim.workload.doubts import doubts_on_times, tick_of
from sim.workload.errors import TraceError
from sim.workload.info import LengthStats, ReuseStats, trace_info
from sim.workload.rows import BadRow
from sim.workload.tracerows import ReadRules


def gaps(mean_ps, count=400, seed=1):
    """Return random instants with this mean gap."""
    draw = random.Random(seed)
    at, found = 0, []
    for _ in range(count):
        at += int(draw.expovariate(1) * mean_ps) + 1
        found.append(at)
    return found


def test_usual_traces_raise_no_doubts():
    for mean_ps in (10**10, S // 3, 20 * S):
        assert doubts_on_times(gaps(mean_ps)) == []


def test_seconds_taken_for_milliseconds_are_doubted():
    (doubt,) = doubts_on_times([at // 1000 for at in gaps(S // 3)])
    assert doubt.text.endswith(" requests/s: the timestamps look like a coarser unit than the format's")
    assert doubt.remedy == "if they are seconds and should be milliseconds, multiply them by 1000"


def test_milliseconds_taken_for_seconds_are_doubted():
    (doubt,) = doubts_on_times([at * 1000 for at in gaps(S // 3)])
    assert doubt.text.startswith("one request in 3")
    assert doubt.remedy == "if they are milliseconds and should be seconds, divide them by 1000"


def test_unix_time_is_doubted():
    (doubt,) = doubts_on_times([1_700_000_000 * S + at for at in gaps(S // 3)])
    assert doubt == Advice(
        "the first request arrives 19,676 days after the start",
        "if the timestamps are Unix time, subtract the first one from all",
    )


def test_one_instant_for_all_is_doubted():
    assert doubts_on_times([5] * 30)[0].text == "the first 30 requests arrive at one instant"


def test_too_few_rows_are_not_judged():
    assert doubts_on_times([0] * 19) == []


def jittered_ticks():
    """Return instants of ticks that are 2999, 3000 or 3001 ms apart, several at each."""
    draw = random.Random(2)
    ticks = [k * 3 * S + draw.choice((-MS, 0, 0, MS)) + S for k in range(200)]
    return sorted(tick for tick in ticks for _ in range(draw.randrange(2, 20)))


def test_ticks_are_told_with_their_length_unless_declared():
    (doubt,) = doubts_on_times(jittered_ticks())
    assert doubt.text.startswith("arrivals come in ticks of 3 s, ")
    assert doubt.remedy == "set workload.tick: 3 s to spread them within the ticks"
    assert doubts_on_times(jittered_ticks(), 3 * S) == []


def test_whole_seconds_of_a_sparse_trace_are_a_tick_and_milliseconds_are_none():
    assert tick_of([at // S * S for at in gaps(S // 2, 2000)]) == S
    assert tick_of([at // MS * MS for at in gaps(20 * MS, 2000)]) is None
    assert tick_of(gaps(S // 2, 2000)) is None


def test_a_workload_hands_on_the_doubts_of_its_trace(tmp_path):
    lines = [
        json.dumps({"timestamp": at / 1000 / MS, "input_length": 1, "output_length": 1})
        for at in gaps(S // 3)
    ]
    path = write(tmp_path / "m.jsonl", "\n".join(lines))
    (doubt,) = build_workload(WorkloadForm(trace=str(path)), Streams(1)).advice()
    assert "coarser unit" in doubt.text


def test_info_of_a_small_trace_by_hand():
    found = trace_info(str(DATA / "mooncake.jsonl"))
    assert (found.format, found.rows, found.skipped_rows, found.bad_rows) == ("mooncake", 5, 0, ())
    assert found.extra_keys == ("user", "turn")
    assert (found.span_s, found.mean_rate_per_s, found.peak_minute_rate_per_s) == (1.0, 5.0, 5.0)
    assert found.input_tokens == LengthStats(mean=652.4, p50=700.0, p90=1024.6, p99=1024.96, max=1025)
    # blocks: [0 1] [0 1 2] [3] [0]: 3 of 7 seen before, 1024 + 512 tokens of 3262 in a known prefix
    assert found.reuse == ReuseStats(512, 7, 4, 3 / 7, (1024 + 512) / 3262)
    assert (found.known, found.is_verified, found.advice) == (None, None, ())


def test_info_counts_bad_rows_and_shows_the_first(tmp_path):
    text = (DATA / "mooncake.jsonl").read_text() + "no\n" * 7
    found = trace_info(str(write(tmp_path / "m.jsonl", text)))
    assert (found.rows, found.skipped_rows, len(found.bad_rows)) == (5, 7, 5)
    assert found.bad_rows[0] == BadRow(
        6, "not JSON: Expecting value at column 1", "each line is one JSON object"
    )


def test_info_takes_another_block_size_and_says_which_fits(tmp_path):
    path = str(
        write(
            tmp_path / "m.jsonl",
            '{"timestamp": 0, "input_length": 33, "output_length": 1, "hash_ids": [1, 2, 3]}',
        )
    )
    assert trace_info(path, rules=ReadRules(block_tokens=16)).reuse == ReuseStats(16, 3, 3, 0.0, 0.0)
    with pytest.raises(TraceError, match="none of 1 rows can be used") as caught:
        trace_info(path)
    assert caught.value.hint == "all rows fit blocks of 16 tokens: set workload.block_tokens: 16"


def test_info_knows_a_public_trace_by_name_and_doubts_other_bytes(tmp_path):
    path = tmp_path / "conversation_trace.jsonl"
    path.write_bytes((DATA / "mooncake.jsonl").read_bytes())
    found = trace_info(str(path))
    assert found.known is not None
    assert found.known.name == "mooncake-conversation"
    assert found.is_verified is False
