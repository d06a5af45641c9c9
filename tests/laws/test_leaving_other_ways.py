"""Users who leave colocated replicas, or while they wait for decode memory: nothing is left behind."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from models.comparing import drawn, seeded
from models.play import drawn_requests, plan, play, pool, seat
from models.studies import SCENARIO, with_shared_prefixes, write
from models.wires import OwnWires

from sim import api
from sim.serving.plan import BatchingPlan
from sim.tables.recorder import MemorySink, Recorder
from sim.tables.schema import PHASES, STATUSES
from sim.timing.fixed import FixedTiming

RULES = ("prefill_first", "chunked", "mixed", "chunked_apart", "static")


def impatient(dice, requests):
    return [
        request._replace(cancelled_after_ps=dice.randint(1, 600) if dice.random() < 0.5 else -1)
        for request in requests
    ]


def colocated(seed):
    """One pool of colocated replicas whose memory is short, and users who leave."""
    dice = Random(f"colocated {seed}")
    timing = FixedTiming(
        prefill_base_ps=dice.choice((1, 10, 60)),
        prefill_per_token_ps=dice.choice((1, 5)),
        decode_base_ps=dice.choice((5, 20)),
        decode_per_token_ps=dice.choice((0, 1)),
    )
    batching = BatchingPlan(
        dice.choice(RULES),
        "fcfs",
        chunk_tokens=dice.choice((3, 8, 1000)),
        reserves_whole=dice.random() < 0.3,
        spare_tokens=0,
    )
    replicas = dice.randint(1, 2)
    serve = replace(
        pool("serve", [seat(0) for _ in range(replicas)], timing, dice.choice((40, 64, 1000))),
        role="colocated",
        max_batch_tokens=dice.choice((24, 1000)),
        max_sequences=dice.choice((2, 4, 16)),
        batching=batching,
    )
    nothing = pool("prefill", [], timing, 10**6)
    drawn_plan = plan(
        nothing,
        replace(nothing, name="decode", role="decode"),
        colocated=serve,
        reuse=dice.random() < 0.5,
        timeout_ps=dice.choice((None, 150, 900)),
        cancels=True,
    )
    return drawn_plan, impatient(dice, drawn_requests(dice, 40, drawn_plan.block_tokens))


def add_up(done, requests):
    """Every request has one row whose phases are its life."""
    rows = done.requests
    assert sorted(rows["request_id"].tolist()) == [request.id for request in requests]
    assert all((rows[f"phase_{name}_ps"] >= 0).all() for name in PHASES)
    serving = done.serving
    assert not serving.live
    assert serving.done == serving.arrived == len(requests)
    assert serving.dispatch.colocated == serving.dispatch.apart == 0
    return Counter(STATUSES[status] for status in rows["status"].tolist())


def test_colocated_replicas_keep_nothing_of_those_who_left():
    seen = Counter()
    for seed in range(150):
        drawn_plan, requests = colocated(seed)
        with seeded(seed):
            done = play(drawn_plan, requests, OwnWires(1))
            seen += add_up(done, requests)
            of = done.serving.colocated
            assert of.loads.tokens == [0] * len(of.replicas)
            for replica in of.replicas:
                assert (replica.running, replica.under_way, replica.waiting) == (0, 0, [])
                assert replica.memory.claimed == replica.pages.pages == 0
                assert replica._context == replica._measured == 0
                assert not replica._joining
                assert not replica._has_gone
    assert min(seen[name] for name in ("finished", "timed_out", "cancelled")) > 100


@pytest.mark.parametrize("decode_first", [False, True])
def test_prompts_that_wait_for_decode_memory_first_give_it_back(decode_first):
    seen = Counter()
    for seed in range(100):
        drawn_plan, requests, latency_ps = drawn(seed)
        dice = Random(f"first {seed}")
        drawn_plan = replace(
            drawn_plan,
            reserves_first=True,
            timeout_ps=dice.choice((None, 200, 1000)),
            cancels=True,
            router=replace(drawn_plan.router, decode_first=decode_first),
        )
        requests = impatient(dice, requests)
        with seeded(seed):
            done = play(drawn_plan, requests, OwnWires(latency_ps))
            seen += add_up(done, requests)
            serving = done.serving
            assert all(replica.memory.claimed == 0 for replica in serving.prefill.replicas)
            for replica in serving.decode.replicas:
                assert replica.free_pages == serving.decode.capacity_pages
                assert (replica.running, replica.waiting, replica.reserving) == (0, 0, 0)
            for of in (serving.prefill, serving.decode):
                assert of.loads.tokens == [0] * len(of.loads.tokens)
    assert min(seen[name] for name in ("finished", "timed_out", "cancelled")) > 100


@pytest.mark.parametrize("streams", ["true", "false"])
def test_runs_with_a_pool_and_streamed_handoffs_end_empty(tmp_path, streams):
    """What is saved, fetched and streamed of those who left is let go, too."""
    path = write(tmp_path, with_shared_prefixes(SCENARIO))
    sets = (
        "pools.prefill.replicas=2",
        "pools.decode.replicas=1",
        "pools.decode.max_sequences=4",
        "kv_pool={policy: pooled, dram: 20 GB, fetch: always}",
        f"kv_pool.stream_out={streams}",
        f"kv_pool.overlap_fetch={streams}",
        "router.policy=conductor",
        "workload.timeout=3 s",
        "workload.cancel={share: 50 %, after: 500 ms}",
    )
    sink = MemorySink()
    simulation = api.Simulation(api.resolve(api.load(path, sets)), Recorder(sink))
    simulation.play(api.Silent())
    seen = Counter(STATUSES[status] for status in sink.request_table()["status"].tolist())
    assert min(seen[name] for name in ("finished", "timed_out", "cancelled")) > 5, seen
    assert sum(seen.values()) == 300
    serving = simulation.serving
    assert not serving.live
    assert all(replica.memory.claimed == 0 for replica in serving.prefill.replicas)
    assert all(replica.free_pages == serving.decode.capacity_pages for replica in serving.decode.replicas)
    assert serving.network.active == 0
    for of in (serving.prefill, serving.decode):
        assert of.loads.tokens == [0] * len(of.loads.tokens)
