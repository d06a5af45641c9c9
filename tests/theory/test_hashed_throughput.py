"""What hashing costs on a non-blocking fabric: every NIC sends to another one of its rail, at once.

The table is that of an independent prototype on 512 nodes of eight rails (arrays, no events, another hash):
mean and first percentile of what a transfer gets of its NIC's rate. `split` queue pairs have equal bytes, so
the slowest of them counts; `pooled` ones take from what is left, so their sum does.
"""

from random import Random

import numpy as np
import pytest
from models.clusters import SMALL, changed, cluster_of
from models.clusters import routed as cluster_with
from models.filling import fair_rates
from models.snapshots import permutation, rates, throughput

from sim.clock import Clock
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.network.maxmin import MaxMin, Rated
from sim.network.parts import dealt

ONE, FOUR, LEAST = "{kind: ecmp}", "{kind: ecmp, qps: 4}", "{kind: ar_flow}"
POOLED = "{kind: ecmp, qps: 4, bytes: pooled}"
TABLE = [
    (ONE, 0.1, "pooled", 0.89, 0.33),
    (ONE, 0.25, "pooled", 0.76, 0.33),
    (ONE, 0.5, "pooled", 0.62, 0.25),
    (ONE, 1.0, "pooled", 0.49, 0.20),
    (FOUR, 0.1, "split", 1.00, 1.00),
    (FOUR, 0.25, "split", 0.97, 0.57),
    (FOUR, 0.5, "split", 0.82, 0.44),
    (FOUR, 1.0, "split", 0.57, 0.33),
    (FOUR, 0.1, "pooled", 1.00, 1.00),
    (FOUR, 0.25, "pooled", 1.00, 1.00),
    (FOUR, 0.5, "pooled", 0.99, 0.73),
    (FOUR, 1.0, "pooled", 0.81, 0.51),
    (LEAST, 0.1, "pooled", 0.96, 0.50),
    (LEAST, 0.25, "pooled", 0.87, 0.33),
    (LEAST, 0.5, "pooled", 0.78, 0.33),
    (LEAST, 1.0, "pooled", 0.62, 0.25),
]


@pytest.fixture(scope="module")
def routed(tmp_path_factory):
    """The fabric of 500 nodes with a routing."""
    clusters = {}

    def find(routing):
        if routing not in clusters:
            clusters[routing] = cluster_with(tmp_path_factory.mktemp("routed"), routing)
        return clusters[routing]

    return find


@pytest.fixture(scope="module")
def measured(routed):
    """What each queue pair gets with a routing and a part of the NICs active: at least 990 transfers."""
    draws = {}

    def find(routing, active):
        if (routing, active) not in draws:
            cluster = routed(routing)
            seeds = range(3 if active < 0.25 else 1)
            pairs = [permutation(cluster, active, Random(seed)) for seed in seeds]
            found = [throughput(cluster, of_seed, seed) for seed, of_seed in zip(seeds, pairs, strict=True)]
            draws[routing, active] = np.concatenate(found)
        return draws[routing, active]

    return find


def reached(found, bytes_):
    """What each transfer gets, from what each of its queue pairs gets."""
    return found.sum(axis=1) if bytes_ == "pooled" else found.min(axis=1) * found.shape[1]


@pytest.mark.parametrize(("routing", "active", "bytes_", "mean", "first_percentile"), TABLE)
def test_same_rail_permutation(measured, routing, active, bytes_, mean, first_percentile):
    """The mean within 0.04; the slowest share a cable with one more or less of theirs."""
    found = reached(measured(routing, active), bytes_)
    assert found.max() <= 1 + 1e-9
    assert found.mean() == pytest.approx(mean, abs=0.04)
    assert first_percentile * 0.7 <= np.percentile(found, 1) <= first_percentile * 1.55


@pytest.mark.slow
def test_sixteen_queue_pairs_that_pool_their_bytes_are_nearly_as_good_as_spraying(routed):
    cluster = routed("{kind: ecmp, qps: 16}")
    found = reached(throughput(cluster, permutation(cluster, 1.0, Random(1))), "pooled")
    assert found.mean() == pytest.approx(0.98, abs=0.02)
    assert np.percentile(found, 1) == pytest.approx(0.83, abs=0.05)


def pooled_rates(cluster, pairs, seed):
    """What each transfer gets of its NIC's rate in the engine where queue pairs share what is left."""
    fabric = Fabric(cluster, 1, seed)
    network = FlowNetwork(Clock(), fabric.table.carried)
    for one, to in pairs:
        paths = [fabric.gpu_to_gpu(one, to, pair) for pair in fabric.pairs(one.node, to.node)]
        network.send(dealt(10**12, paths, fabric.is_pooled))
    draws = {link_flow.flow: None for link in fabric.links for link_flow in link.flows}
    assert len(draws) == len(pairs)
    rates_of = {flow.id: flow.rate for flow in draws}
    return np.array([rates_of[number] for number in range(len(pairs))]) / (cluster.rate_bytes_per_s / 1e12)


def test_the_engine_gives_pooled_transfers_the_sum_of_their_queue_pairs(tmp_path):
    cluster = cluster_of(tmp_path, changed(SMALL, ("rails: 8", f"rails: 8\n  routing: {POOLED}")))
    for seed in range(3):
        pairs = permutation(cluster, 1.0, Random(seed))
        found = pooled_rates(cluster, pairs, seed)
        assert found == pytest.approx(throughput(cluster, pairs, seed).sum(axis=1), rel=1e-9)
        assert found.min() < 0.9


@pytest.mark.slow
def test_pooled_transfers_of_the_engine_do_as_the_table_says(routed):
    cluster = routed(POOLED)
    found = pooled_rates(cluster, permutation(cluster, 1.0, Random(1)), 1)
    assert found.mean() == pytest.approx(0.81, abs=0.04)
    assert np.percentile(found, 1) == pytest.approx(0.51, abs=0.05)


@pytest.mark.parametrize("active", [0.1, 0.5, 1.0])
def test_spraying_gives_everyone_the_rate_of_the_nic(routed, active):
    cluster = routed("{kind: spray}")
    assert throughput(cluster, permutation(cluster, active, Random(2))) == pytest.approx(1.0)


def test_more_queue_pairs_do_better(measured):
    kinds = [f"{{kind: ecmp, qps: {queue_pairs}}}" for queue_pairs in (2, 4, 8)]
    means = [reached(measured(kind, 0.25), "split").mean() for kind in (ONE, *kinds)]
    assert means == sorted(means)
    assert means[0] < 0.8
    assert means[-1] > 0.99


def test_static_routing_is_no_worse_than_hashing(routed):
    """By destination, receivers of a leaf each have a cable of their own on the way down."""
    cluster = routed("{kind: static}")
    found = throughput(cluster, permutation(cluster, 1.0, Random(4)))
    assert found.mean() > 0.45


def test_the_rates_of_the_table_are_those_of_the_solver(routed):
    """The arrays that fill the table, against the engine on the same flows, and the textbook on few."""
    cluster = routed(ONE)
    fabric, solver = Fabric(cluster, 1), MaxMin()
    paths = [fabric.gpu_to_gpu(*pair) for pair in permutation(cluster, 0.15, Random(5))]
    flows = [Rated(path.links) for path in paths]
    for flow in flows:
        solver.add(flow)
    found = rates([path.counted for path in paths], [link.capacity for link in fabric.links])
    assert [flow.rate for flow in flows] == pytest.approx(found, rel=1e-9)
    dice = Random(6)
    for _ in range(100):
        capacities = [dice.choice((1, 2, 3, 5, 8)) for _ in range(6)]
        drawn = [dice.sample(range(6), dice.randint(1, 4)) for _ in range(dice.randint(1, 12))]
        assert rates(drawn, capacities) == pytest.approx(
            [float(rate) for rate in fair_rates(drawn, capacities)]
        )
