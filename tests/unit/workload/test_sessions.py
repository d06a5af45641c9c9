"""Sessions, generated and recorded: their prompts grow, blocks go on, and files are read as they are."""

from itertools import islice

import pytest
from session_parts import TURNS, WEKA, jsonl

from sim.base.streams import Streams
from sim.config.scenario import Workload
from sim.workload.build import build_sessions
from sim.workload.errors import TraceError
from sim.workload.readers import guess_format
from sim.workload.sessions import OWN, PARTIAL
from sim.workload.sessiontrace import PARTIAL as RECORDED_PARTIAL
from sim.workload.sessiontrace import guess_session_format, session_format
from sim.workload.source import TraceFile

S = 10**12
FIXED = {"kind": "fixed", "tokens": 100}


def sessions(seed=1, **fields):
    return build_sessions(Workload(**fields), Streams(seed))


def generated(**fields):
    form = {"users": 2, "turns": 3, "input": FIXED, "output": {"kind": "fixed", "tokens": 30}} | fields
    return sessions(sessions=form, block_tokens=64)


def told(workload, most=10):
    return [
        (one.id, one.starts_ps, list(islice(one.turns, most))) for one in islice(workload.sessions(), most)
    ]


def test_prompts_hold_everything_before():
    (_, starts_ps, turns), *_ = told(generated(system_tokens=130))
    assert starts_ps is None
    assert [(turn.input_tokens, turn.output_tokens) for turn in turns] == [(230, 30), (360, 30), (490, 30)]
    assert [turn.think_ps for turn in turns] == [0, 0, 0]


def test_full_blocks_go_on_and_partial_ones_are_new():
    (_, _, first), (_, _, second), *_ = told(generated(system_tokens=130))
    own = OWN
    assert first[0].blocks == (0, 1, own + 2, own + PARTIAL)
    assert first[1].blocks == (0, 1, own + 2, own + 3, own + 4, own + PARTIAL + 1)
    assert second[0].blocks == (0, 1, 2 * own + 2, 2 * own + PARTIAL)
    for _, _, turns in told(generated()):
        for turn in turns:
            assert len(turn.blocks) == -(-turn.input_tokens // 64)


def test_numbers_of_turns():
    fixed = [len(turns) for _, _, turns in told(generated(turns=4), 50)]
    assert fixed == [4] * 50
    drawn = [len(turns) for _, _, turns in told(generated(turns=None, mean_turns=3.0), 400)]
    assert min(drawn) == 1
    assert sum(drawn) / 400 == pytest.approx(3, rel=0.15)


def test_sessions_that_begin_by_themselves_and_users_who_think():
    made = generated(users=None, arrivals={"kind": "poisson", "rate": "2 req/s"}, think="5 s")
    starts = [starts_ps for _, starts_ps, _ in told(made, 200)]
    assert starts == sorted(starts)
    assert starts[-1] / S == pytest.approx(100, rel=0.2)
    thoughts = [turn.think_ps for _, _, turns in told(made, 200) for turn in turns[1:]]
    assert sum(thoughts) / len(thoughts) / S == pytest.approx(5, rel=0.2)
    assert all(turns[0].think_ps == 0 for _, _, turns in told(made, 50))


def test_a_second_pass_gives_the_same_in_whatever_order_turns_are_taken():
    made = generated(mean_turns=3.0, turns=None, input={"kind": "lognormal", "median_tokens": 50, "sigma": 1})
    one = told(made)
    both = list(islice(made.sessions(), 10))
    assert [list(session.turns) for session in reversed(both)] == [turns for _, _, turns in reversed(one)]


def test_concurrent_requests_are_sessions_of_one_turn():
    made = sessions(concurrency=3, input=FIXED, output=FIXED, ramp_up="6 s", think="1 s", limit=9)
    assert (made.users, made.ramp_up_ps, made.limit) == (3, 6 * S, 9)
    turns = [turns for _, _, turns in told(made)]
    assert all(len(of_one) == 1 for of_one in turns)
    assert [of_one[0].think_ps > 0 for of_one in turns] == [False] * 3 + [True] * 7


def test_weka_sessions(tmp_path):
    path = jsonl(tmp_path / "weka.jsonl", WEKA)
    assert guess_session_format(TraceFile(path)) == "weka"
    (_, _, one), (_, _, two) = told(sessions(sessions={"trace": str(path), "users": 1}, block_tokens=64))
    assert [(turn.input_tokens, turn.output_tokens) for turn in one] == [
        (130, 5),
        (64, 3),
        (70, 4),
        (200, 7),
        (256, 9),
    ]
    # The sub-agent took 6 s of the 10 s in between; the last one thought since the answer before it.
    assert [turn.think_ps / S for turn in one] == [0, 0, 3, 4, 4]
    assert one[0].blocks == (1, 2, RECORDED_PARTIAL)
    assert one[1].blocks == (90,)
    assert one[3].blocks[:3] == (1, 2, 8)
    assert two[0].blocks == (2**40 + 1,)


def test_think_times_are_cut_or_replaced(tmp_path):
    path = str(jsonl(tmp_path / "weka.jsonl", WEKA))
    for changes, expected in (
        ({"max_think": "3.5 s"}, [0, 0, 3, 3.5, 3.5]),
        ({"think": "1 s"}, [0, 1, 1, 1, 1]),
    ):
        (_, _, one), _ = told(sessions(sessions={"trace": path, "users": 1, **changes}, block_tokens=64))
        assert [turn.think_ps / S for turn in one] == expected


def test_lines_of_turns(tmp_path):
    path = jsonl(tmp_path / "turns.jsonl", TURNS)
    found = told(sessions(sessions={"trace": str(path)}, block_tokens=16))
    assert [(starts_ps, len(turns)) for _, starts_ps, turns in found] == [(0, 2), (S // 2, 2)]
    assert [turn.think_ps for turn in found[0][2]] == [0, 2_586_500_000_000]
    assert found[0][2][1].blocks == (0, 2, 3)


def test_sessions_are_no_plain_trace(tmp_path):
    path = jsonl(tmp_path / "weka.jsonl", WEKA)
    with pytest.raises(
        TraceError, match=r":1: these are sessions.*\n  hint: play them with workload.sessions"
    ):
        guess_format(TraceFile(path))
    assert guess_format(TraceFile(jsonl(tmp_path / "turns.jsonl", TURNS))) == "mooncake"


@pytest.mark.parametrize("name", session_format)
def test_every_format_says_what_it_reads(name):
    assert session_format.summary(name).startswith("JSON lines of ")


MISTAKES = {
    "no sessions": ([{"a": 1}], {}, ":1: no sessions in the first line"),
    "no start": (WEKA, {}, ":1: these sessions do not say when they began"),
    "blocks of another size": (
        WEKA,
        {"users": 1, "block_tokens": 128},
        ":1: 3 hash_ids for 130 input tokens",
    ),
    "a list that is too short": (
        [{"requests": [{"t": 0, "in": 130, "out": 1, "hash_runs": [[1, 1]]}]}],
        {"users": 1},
        ":1: 1 hash ids for 130 tokens; 2 blocks of 64 are full",
    ),
    "out of order": (
        [TURNS[2], TURNS[0]],
        {"block_tokens": 16},
        ":2: comes before the turn above it of its session",
    ),
    "a key is missing": ([{"session_id": 1, "timestamp": 0}], {}, ":1: no 'input_length' in this row"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_file_is_told_at_its_line(tmp_path, name):
    rows, fields, message = MISTAKES[name]
    path = jsonl(tmp_path / "file.jsonl", rows)
    size = fields.pop("block_tokens", 64) if "block_tokens" in fields else 64
    with pytest.raises(TraceError) as caught:
        told(sessions(sessions={"trace": str(path), **fields}, block_tokens=size))
    assert message in str(caught.value)
