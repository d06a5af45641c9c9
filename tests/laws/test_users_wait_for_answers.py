"""Closed loops: turns keep their order and never overlap, users are as many as said, and loops end."""

import math
from itertools import pairwise

import pytest
from models.studies import SCENARIO, played
from session_parts import TURNS, WEKA, clients, jsonl

from sim import api
from sim.base.errors import ConfigErrors
from sim.base.streams import Streams
from sim.workload.build import build_workload

FIXED = "{kind: fixed, tokens: 200}"
SHORT = "{kind: lognormal, median_tokens: 20, sigma: 0.7}"


def scenario(workload, run="{duration: 5 s}"):
    return f"{SCENARIO[: SCENARIO.index('workload:')]}workload: {workload}\nrun: {run}\n"


def requests(folder, workload, run="{duration: 5 s}", *sets):
    """The rows of a run, in order of arrival."""
    found = played(folder, *sets, scenario=scenario(workload, run))
    return found, found.requests.sort_values(["arrived_at_ps", "request_id"])


def in_flight(rows):
    """The most requests that were there at one instant; at equal instants ends come first."""
    events = [(at, 1) for at in rows["arrived_at_ps"]]
    events += [(at + took, 0) for at, took in zip(rows["arrived_at_ps"], rows["e2e_ps"], strict=True)]
    most = now = 0
    for _, is_arrival in sorted(events):
        now += 1 if is_arrival else -1
        most = max(most, now)
    return most


def test_so_many_requests_are_in_flight_and_no_more(tmp_path):
    _, rows = requests(tmp_path, f"{{concurrency: 7, input: {FIXED}, output: {SHORT}}}")
    assert (rows["status"] == "finished").all()
    assert in_flight(rows) == 7
    assert rows["arrived_at_s"].max() < 5
    busy = rows["e2e_s"].sum() - (rows["arrived_at_s"] + rows["e2e_s"] - 5).clip(lower=0).sum()
    assert busy == pytest.approx(7 * 5)  # somebody is always there: Little's law, exactly


def test_users_come_one_after_the_other_and_think(tmp_path):
    workload = f"{{concurrency: 4, input: {FIXED}, output: {SHORT}, ramp_up: 2 s, think: 500 ms}}"
    found, rows = requests(tmp_path, workload)
    assert in_flight(rows) <= 4
    assert rows["arrived_at_s"].iloc[0] == 0
    assert (rows["arrived_at_s"] < 0.5).sum() < 4
    mean = rows["e2e_s"].mean()
    assert len(rows) == pytest.approx(4 * (5 - 0.75) / (mean + 0.5), rel=0.3)
    assert found.figures["requests_finished"] == len(rows)


def turns_of(rows, session_of):
    """Arrivals and ends of each session, in order of arrival."""
    sessions = {}
    for row in rows.itertuples():
        sessions.setdefault(session_of(row), []).append((row.arrived_at_ps, row.arrived_at_ps + row.e2e_ps))
    return sessions.values()


MULTI = (
    "{block_tokens: 64, sessions: {users: 5, turns: 4, system_tokens: 128, "
    f"input: {FIXED}, output: {SHORT}, think: 20 ms}}}}"
)


def test_turns_of_a_session_keep_their_order_and_never_overlap(tmp_path):
    """Told apart by the first block that is their own."""
    _, rows = requests(tmp_path, MULTI)
    sessions = turns_of(rows, lambda row: row.block_ids[2])
    assert len(sessions) > 20
    for turns in sessions:
        assert len(turns) <= 4
        assert all(end <= after for (_, end), (after, _) in pairwise(turns))
    assert in_flight(rows) <= 5
    longest = rows.groupby(rows["block_ids"].str[2])["input_tokens"].apply(list)
    assert all(prompts == sorted(prompts) for prompts in longest)


def test_later_turns_find_earlier_ones_in_the_cache(tmp_path):
    sticky = ("router.policy=session_sticky",)
    found, rows = requests(tmp_path, MULTI, "{duration: 5 s}", *sticky)
    later = rows[rows["input_tokens"] > 400]
    assert (later["cached_tokens"] >= 128 + 128).all()
    homes = rows.groupby(rows["block_ids"].str[2])["prefill_replica"].nunique()
    assert (homes == 1).all()
    loose = played(tmp_path, "router.policy=round_robin", scenario=scenario(MULTI))
    assert found.figures["hit_fraction"] > loose.figures["hit_fraction"]


def test_sessions_that_begin_by_themselves(tmp_path):
    workload = (
        "{sessions: {arrivals: {kind: poisson, rate: 20 req/s}, mean_turns: 3, "
        f"input: {FIXED}, output: {SHORT}}}, limit: 150}}"
    )
    found, rows = requests(tmp_path, workload, "{seed: 3}")
    assert len(rows) == found.figures["requests_finished"] == 150


def test_recorded_sessions_are_played_to_their_end(tmp_path):
    jsonl(tmp_path / "weka.jsonl", WEKA)
    _, rows = requests(tmp_path, "{block_tokens: 64, sessions: {trace: weka.jsonl, users: 1}}", "{}")
    assert rows["input_tokens"].tolist() == [130, 64, 70, 200, 256, 64]
    gaps = (rows["arrived_at_s"].diff() - rows["e2e_s"].shift()).tolist()[1:5]
    assert gaps == pytest.approx([0, 3, 4, 4])
    jsonl(tmp_path / "turns.jsonl", TURNS)
    _, rows = requests(tmp_path, "{block_tokens: 16, sessions: {trace: turns.jsonl, think: 1 s}}", "{}")
    assert sorted(rows["input_tokens"]) == [16, 17, 20, 33]


def test_users_go_on_after_time_outs_and_rejections(tmp_path):
    workload = f"{{concurrency: 3, input: {FIXED}, output: {FIXED}, timeout: 100 ms, limit: 40}}"
    found, rows = requests(tmp_path, workload, "{}")
    assert found.figures["requests_timed_out"] == len(rows) == 40
    huge = "{kind: fixed, tokens: 100000000}"
    workload = f"{{concurrency: 3, input: {huge}, output: {FIXED}}}"
    found, rows = requests(tmp_path, workload, "{duration: 10 s}")
    assert found.figures["requests_rejected"] == len(rows) == 30


def test_clients_of_servegen(tmp_path):
    clients(tmp_path / "few")
    found, rows = requests(tmp_path, "{servegen: ./few, rate_scale: 10, limit: 200}", "{}")
    assert found.figures["requests_finished"] == 200
    assert set(rows["input_tokens"]) == {10, 30}


def test_priorities_are_shared_out(tmp_path):
    played(tmp_path)
    loaded = api.load(
        tmp_path / "scenario.yaml",
        ["workload.priorities=[{share: 20 %, priority: 3}, {share: 30 %, priority: 1}]"],
    )
    drawn = [request.priority for request in build_workload(loaded.workload, Streams(1))]
    shares = [drawn.count(priority) / len(drawn) for priority in (3, 1, 0)]
    assert shares == pytest.approx([0.2, 0.3, 0.5], abs=4 * math.sqrt(0.25 / 300))


def test_the_same_loop_gives_the_same_run(tmp_path):
    one, _ = requests(tmp_path, MULTI)
    again, _ = requests(tmp_path, MULTI)
    assert one.digest == again.digest


MISTAKES = {
    "no end": (f"{{concurrency: 3, input: {FIXED}, output: {FIXED}}}", "{}", "run.duration: users who wait"),
    "a start": (MULTI, "{start: 1 s, duration: 1 s}", "run.start: users who wait for answers begin at 0 s"),
    "warm caches": (MULTI, "{duration: 1 s, warm_caches: true}", "run.warm_caches: nothing comes before"),
    "no lengths": ("{concurrency: 3, limit: 3}", "{}", "workload.input: missing"),
    "both": (
        f"{{sessions: {{users: 1, arrivals: {{kind: poisson, rate: 1 req/s}}, turns: 1, input: {FIXED}, "
        f"output: {FIXED}}}}}",
        "{duration: 1 s}",
        "users and arrivals exclude each other",
    ),
    "nobody": (f"{{sessions: {{turns: 1, input: {FIXED}, output: {FIXED}}}}}", "{}", "says nobody who asks"),
    "a format": (
        "{sessions: {trace: scenario.yaml, format: wekka, users: 1}}",
        "{}",
        "workload.sessions.format: unknown session format 'wekka'",
    ),
    "no file": ("{sessions: {trace: none.jsonl, users: 1}}", "{}", "workload.sessions.trace: "),
    "shares": (
        f"{{concurrency: 1, limit: 1, input: {FIXED}, output: {FIXED}, "
        "priorities: [{share: 70 %, priority: 1}, {share: 40 %, priority: 2}]}",
        "{}",
        "the shares are more than 100 %",
    ),
    "a ramp without a start": (
        f"{{arrivals: {{kind: ramp, rate: 5 req/s, period: 1 min}}, input: {FIXED}, output: {FIXED}}}",
        "{}",
        "workload.arrivals.first_rate: missing: kind ramp needs it",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_does_not_fit_is_told_at_its_line(tmp_path, name):
    workload, run, message = MISTAKES[name]
    with pytest.raises(ConfigErrors) as caught:
        played(tmp_path, scenario=scenario(workload, run))
    assert message in str(caught.value)
    assert caught.value.errors[0].line
