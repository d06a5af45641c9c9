"""Users who time out or take requests back: against a model that goes step by step, and what adds up."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from models.comparing import compare, drawn, seeded
from models.play import play
from models.studies import SCENARIO, played, with_shared_prefixes
from models.wires import OwnWires

from sim.tables.schema import STATUSES


def leaving(seed):
    """A drawn plan and requests, many of which are taken back or time out."""
    plan, requests, latency_ps = drawn(seed)
    dice = Random(f"leaving {seed}")
    timeout_ps = dice.choice((None, 30, 200, 1000))
    plan = replace(plan, timeout_ps=timeout_ps, cancels=True)
    router = replace(plan.router, decode_first=dice.random() < 0.3)
    share = dice.choice((0.2, 0.7))
    requests = [
        request._replace(cancelled_after_ps=dice.randint(1, 400) if dice.random() < share else -1)
        for request in requests
    ]
    return replace(plan, router=router), requests, latency_ps


@pytest.mark.parametrize("first_seed", range(0, 300, 50))
def test_who_leaves_when_and_what_the_others_get_is_as_step_by_step(first_seed):
    for seed in range(first_seed, first_seed + 50):
        plan, requests, latency_ps = leaving(seed)
        with seeded(seed):
            compare(plan, requests, OwnWires(latency_ps), OwnWires(latency_ps))


def test_the_drawn_users_leave_from_everywhere():
    """From the queue, while computing, waiting for memory, moving, waiting to join, and generating."""
    seen, statuses = Counter(), Counter()
    for seed in range(60):
        plan, requests, latency_ps = leaving(seed)
        rows = play(plan, requests, OwnWires(latency_ps)).requests
        for i, status in enumerate(rows["status"].tolist()):
            statuses[STATUSES[status]] += 1
            if STATUSES[status] in ("timed_out", "cancelled"):
                last = [name for name in rows if name.startswith("phase_") and rows[name][i] > 0]
                seen[last[-1] if last else "at once"] += 1
    wanted = ("queue", "prefill", "reserve", "transfer", "decode_queue", "decode")
    assert all(seen[f"phase_{phase}_ps"] > 3 for phase in wanted), seen
    assert min(statuses[name] for name in ("finished", "timed_out", "cancelled")) > 50


def test_nothing_is_left_behind():
    """All memory is free again, all loads are zero, and every request has one row."""
    for seed in range(60):
        plan, requests, latency_ps = leaving(seed)
        with seeded(seed):
            done = play(plan, requests, OwnWires(latency_ps))
            serving = done.serving
            assert sorted(done.requests["request_id"].tolist()) == [request.id for request in requests]
            assert not serving.live
            assert serving.done == serving.arrived == len(requests)
            assert all(replica.memory.claimed == 0 for replica in serving.prefill.replicas)
            assert all(not replica.queue for replica in serving.prefill.replicas)
            for replica in serving.decode.replicas:
                assert replica.free_pages == serving.decode.capacity_pages
                assert (replica.running, replica.waiting, replica.reserving) == (0, 0, 0)
                assert replica._context == replica._measured == replica._gone == 0
            for pool in (serving.prefill, serving.decode):
                assert pool.loads.tokens == [0] * len(pool.loads.tokens)


BUSY = ("pools.prefill.replicas=1", "pools.decode.replicas=1", "pools.decode.max_sequences=4")


@pytest.mark.parametrize(
    ("scenario", "timeout_s"),
    [(SCENARIO, 0.5), (with_shared_prefixes(), 4.0)],
    ids=["lengths", "prefixes"],
)
def test_requests_are_conserved_in_whole_runs(tmp_path, scenario, timeout_s):
    run = played(
        tmp_path,
        *BUSY,
        f"workload.timeout={timeout_s} s",
        "workload.cancel={share: 30 %, after: 1 s}",
        "router.policy=conductor",
        scenario=scenario,
    )
    figures = run.figures
    counts = {status: figures[f"requests_{status}"] for status in STATUSES}
    assert sum(counts.values()) == figures["requests_measured"] == 300
    assert min(counts["finished"], counts["timed_out"], counts["cancelled"]) > 10
    rows = run.requests
    assert (rows.loc[rows["status"] != "finished", "e2e_s"].isna()).all()
    gone = rows[rows["status"] == "timed_out"]
    spent = gone[[name for name in rows if name.startswith("phase_")]].sum(axis=1)
    assert spent.to_numpy() == pytest.approx(timeout_s)
    assert rows.loc[rows["status"] == "finished", "e2e_s"].max() <= timeout_s


def test_patience_without_end_changes_nothing(tmp_path):
    plain = played(tmp_path, *BUSY)
    assert played(tmp_path, *BUSY, "workload.timeout=50 d").digest == plain.digest
    taken_back = "workload.cancel={share: 0 %, after: 1 s}"
    assert played(tmp_path, *BUSY, taken_back).digest == plain.digest


def test_those_who_stay_are_served_sooner(tmp_path):
    full = ("workload.arrivals.rate=400 req/s", *BUSY)
    plain = played(tmp_path, *full).requests
    left = played(tmp_path, *full, "workload.cancel={share: 80 %, after: 100 ms}").requests
    both = left[left["status"] == "finished"].merge(plain, on="request_id", suffixes=("", "_plain"))
    assert len(both) > 30
    assert both["e2e_s"].mean() < 0.7 * both["e2e_s_plain"].mean()
