"""Collectives on the NICs of working replicas: by hand, beside handoffs, and byte by byte."""

from random import Random

import pytest
from models.clusters import SMALL, cluster_of
from models.play import plan, play, pool

from sim.clock import TIMER, Clock, Errand
from sim.network.fabric import Fabric, Port
from sim.serving.cluster import Serving
from sim.serving.plan import Collectives, Seat
from sim.tables.recorder import MemorySink, Recorder
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

NODE_PER_PS = 8 * 49.5e9 / 1e12
"""What the NICs of a node carry, in bytes per picosecond; all rails are one lane."""

WIDE = Seat((*[Port(0, 0)] * 8, *[Port(1, 0)] * 8))
NARROW = Seat((Port(4, 0),) * 8)
MS = 10**9


@pytest.fixture
def fabric(tmp_path):
    return Fabric(cluster_of(tmp_path, SMALL), 8)


def wide_plan(token_bytes, prefill, decode, **changes):
    """A plan in which the replicas on both node 0 and node 1 send so many bytes a token and direction."""
    pools = []
    for role, seat in (("prefill", prefill), ("decode", decode)):
        timing = FixedTiming(
            prefill_base_ps=0,
            prefill_per_token_ps=MS // 100,
            decode_base_ps=MS,
            decode_per_token_ps=changes.get("growth_ps", 0),
        )
        load = Collectives(token_bytes, tuple(token_bytes * batch for batch in range(9)))
        collectives = load if len(seat.nodes) > 1 else None
        pools.append(pool(role, [seat], timing, 10**9, max_batch_tokens=1000, collectives=collectives))
    return plan(*pools, kv_bytes_per_token=changes.get("kv_bytes", 10**6), kv_heads=8)


def carried(played, kind):
    """Bytes by node that NICs carried."""
    fabric = played.serving.fabric
    played.serving.network.settle()
    return {
        int(link.name.split()[1]): fabric.table.carried[i]
        for i, link in enumerate(fabric.described)
        if link.kind == kind
    }


def test_a_batch_puts_its_bytes_on_all_its_nics_both_ways(fabric):
    """1000 tokens of 2 MB a token in 10 ms, on each of two nodes; then nothing."""
    serving_plan = wide_plan(2 * 10**6, WIDE, NARROW, kv_bytes=0)
    played = play(serving_plan, [Request(0, 0, 1000, 1, ())], fabric)
    for kind in ("nic_tx", "nic_rx"):
        assert carried(played, kind) == {0: pytest.approx(2e9), 1: pytest.approx(2e9)}
    assert all(link.capacity == pytest.approx(NODE_PER_PS) for link in fabric.links if not link.flows)


def test_while_a_batch_runs_flows_get_what_it_leaves(fabric):
    """Read in the middle of the batch: a rate of 2 GB in 10 ms is gone from each NIC."""
    clock = Clock()
    serving = Serving(clock, wide_plan(2 * 10**6, WIDE, NARROW), fabric, Recorder(MemorySink()))
    Errand(serving.offer([Request(0, 0, 1000, 1, ())]))
    seen = []
    clock.at(5 * MS, TIMER).callbacks.append(
        lambda _: seen.append([link.capacity for port in WIDE.places for link in fabric.nic_links(port)])
    )
    while clock.advance(100):
        pass
    assert seen == [[pytest.approx(NODE_PER_PS - 0.2)] * 4]


def transfer_ps(folder, token_bytes, prompts):
    """How long the handoff of the first of some prompts takes; the others are computed in turn."""
    fabric = Fabric(cluster_of(folder, SMALL), 8)
    serving_plan = wide_plan(token_bytes, WIDE, NARROW, kv_bytes=2 * 10**6)
    played = play(serving_plan, [Request(number, 0, 1000, 2, ()) for number in range(prompts)], fabric)
    return played.requests["phase_transfer_ps"].tolist()[0]


def test_a_handoff_is_slower_by_what_the_max_min_share_says(tmp_path):
    """Two nodes send 1 GB each to the NICs of one: those are the bottleneck, at half a NIC for each sender.

    A batch behind it that takes 60 % of the senders' NICs leaves each 40 %, less than its half.
    """
    latency_ps = 970_000 + 3 * 240_000  # over a spine
    busy = 0.6 * NODE_PER_PS * MS // 100
    for token_bytes, prompts in ((0.0, 1), (0.0, 2), (busy, 1)):
        alone = transfer_ps(tmp_path, token_bytes, prompts) - latency_ps
        assert alone == pytest.approx(2e9 / NODE_PER_PS, rel=1e-6)
    beside = transfer_ps(tmp_path, busy, 2) - latency_ps
    assert beside == pytest.approx(1e9 / (0.4 * NODE_PER_PS), rel=1e-6)


def test_a_decode_segment_that_is_cut_short_has_sent_the_bytes_of_its_steps(fabric):
    """Steps get slower as the context grows, so that the first ones sent more than an even share."""
    serving_plan = wide_plan(10**6, NARROW, WIDE, growth_ps=MS // 100)
    requests = [Request(0, 0, 100, 40, ()), Request(1, 3 * MS, 100, 30, ()), Request(2, 3 * MS, 150, 5, ())]
    played = play(serving_plan, requests, fabric)
    steps = played.segments
    assert len(steps) > 3
    sent = float((steps["steps"] * steps["batch"]).sum()) * 10**6
    kv = 2 * sum(request.input_tokens for request in requests) * 10**6  # 16 ranks of 8 heads hold two copies
    assert sum(carried(played, "nic_tx").values()) == pytest.approx(2 * sent + kv, rel=1e-12)
    assert sum(carried(played, "nic_rx").values()) == pytest.approx(2 * sent + kv, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_all_bytes_are_those_of_handoffs_and_of_collectives(seed, tmp_path):
    dice = Random(seed)
    fabric = Fabric(cluster_of(tmp_path, SMALL), 8)
    other = Seat((*[Port(5, 0)] * 8, *[Port(6, 0)] * 8))
    token_bytes = dice.choice((10**5, 10**6))
    serving_plan = wide_plan(token_bytes, WIDE, other, growth_ps=dice.choice((0, MS // 1000)))
    requests, at_ps = [], 0
    for number in range(40):
        at_ps += dice.choice((0, MS // 7, 30 * MS))
        requests.append(Request(number, at_ps, dice.randint(1, 900), dice.randint(1, 30), ()))
    played = play(serving_plan, requests, fabric)
    prompts = sum(request.input_tokens for request in requests)
    steps = sum(request.output_tokens - 1 for request in requests)
    moved = sum(request.input_tokens for request in requests if request.output_tokens > 1)
    expected = 2 * token_bytes * (prompts + steps) + 2 * moved * 10**6
    for kind in ("nic_tx", "nic_rx"):
        assert sum(carried(played, kind).values()) == pytest.approx(expected, rel=1e-9)
    assert all(link.capacity == link.nominal for link in fabric.links)
