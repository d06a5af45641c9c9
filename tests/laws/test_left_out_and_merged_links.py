"""What a fabric may leave out or merge without changing anything: links that cannot fill, and equal rails."""

from random import Random

import pytest
from models.clusters import SMALL, changed, cluster_of
from models.traffic import Unpruned, finished, transfers

from sim.clock import TIMER
from sim.config.scenario import Pool
from sim.network.fabric import Fabric, Port
from sim.network.flows import FlowNetwork
from sim.serving.seating import lanes

TOLERANCE = 1e-12
PS_PER_S = 10**12

NARROW_LEAVES = ("leaf: {radix: 64, uplinks: 4}", "leaf: {radix: 64, uplinks: 2}")
NARROW_CORES = ("uplinks: 8}", "uplinks: 2}")

ONE_UNIT, OTHER_UNIT = range(4), range(4, 8)


def listed_fabric(missing=(), narrow=()):
    """Two units of four nodes, eight rails, a cable from each leaf to each of four spines, but for some.

    `missing` are spines without cables, `narrow` are (unit, rail) whose leaf has no cable to the last spine.
    """
    lines = ["sim: 1", "name: listed", 'source: ["made up for tests"]', "nodes:"]
    lines += ["  - {name: dgx, type: dgx-b200, count: 8}", "fabric:", "  kind: explicit"]
    lines += ["  link: infiniband-ndr", "  rails: 8", "  uneven: true", "  switches:"]
    leaves = [(unit, rail) for unit in range(2) for rail in range(8)]
    spines = [spine for spine in range(4) if spine not in missing]
    lines += [f"    - {{name: leaf-{unit}-{rail}, tier: 1, radix: 64}}" for unit, rail in leaves]
    lines += [f"    - {{name: spine-{spine}, tier: 2, radix: 64}}" for spine in spines]
    lines.append("  cables:")
    for unit, rail in leaves:
        lines.append(f"    - {{from: dgx/{4 * unit}-{4 * unit + 3}/{rail}, to: leaf-{unit}-{rail}}}")
        lines += [
            f"    - {{from: leaf-{unit}-{rail}, to: spine-{spine}}}"
            for spine in spines
            if spine != 3 or (unit, rail) not in narrow
        ]
    return "\n".join(lines) + "\n"


def tp8(replicas=4):
    return [Pool(name=role, role=role, replicas=replicas, tp=8) for role in ("prefill", "decode")]


def assert_same(ends, others):
    for own, other in zip(ends, others, strict=True):
        assert abs(own - other) <= 1 + TOLERANCE * other


def kinds_of_shared_links(fabric):
    path = fabric.gpu_to_gpu(Port(0, 0), Port(7, 0))
    return [fabric.described[link.id].kind for link in path.links]


@pytest.mark.parametrize("seed", range(3))
def test_a_spine_that_is_missing_brings_the_uplinks_back(seed, tmp_path):
    """With all four spines no uplink can fill; with three a leaf has four NICs below and three cables up."""
    whole = cluster_of(tmp_path, listed_fabric())
    failed = cluster_of(tmp_path, listed_fabric(missing=(1,)))
    assert kinds_of_shared_links(Fabric(whole, 8)) == ["nic_tx", "nic_rx"]
    assert kinds_of_shared_links(Fabric(failed, 8)) == ["nic_tx", "leaf_up", "leaf_down", "nic_rx"]
    found = transfers(Random(seed), 150, ONE_UNIT, OTHER_UNIT, gap_ps=3 * 10**8)
    healthy = finished(Fabric(whole, 8), found)
    assert_same(healthy, finished(Unpruned(Fabric(whole, 8)), found))
    slower = finished(Fabric(failed, 8), found)
    assert_same(slower, finished(Unpruned(Fabric(failed, 8)), found))
    assert sum(late > early * (1 + 1e-6) for early, late in zip(healthy, slower, strict=True)) > 30


@pytest.mark.skipif(
    not hasattr(FlowNetwork, "set_capacity"),
    reason="FAILURES ARE NOT TESTED UNDER TRAFFIC: FlowNetwork has no set_capacity(link, bytes_per_s)",
)
@pytest.mark.parametrize("seed", range(3))
def test_spines_that_fail_under_traffic_bring_the_uplinks_back(seed, tmp_path):
    """Three of four spines fail: flows that were on their way are held back too, until they are repaired."""
    cluster = cluster_of(tmp_path, listed_fabric())
    found = transfers(Random(seed), 150, ONE_UNIT, OTHER_UNIT, gap_ps=3 * 10**8)
    middle_ps = found[50][0] + 1

    def fail_and_repair(traffic):
        links, described = traffic.fabric.links, traffic.fabric.table.described
        way = traffic.fabric.gpu_to_gpu(Port(0, 0), Port(7, 0)).counted
        uplinks = [i for i in way if described[i].kind in {"leaf_up", "leaf_down"}]
        assert len(uplinks) == 2
        for at_ps, part in ((middle_ps, 0.25), (found[120][0] + 1, 1.0)):
            for i in uplinks:
                rate = described[i].capacity_bytes_per_s * part
                traffic.clock.at(at_ps, TIMER + i).callbacks.append(
                    lambda _, i=i, rate=rate: traffic.network.set_capacity(links[i], rate)
                )

    healthy = finished(Fabric(cluster, 8), found)
    pruned = finished(Fabric(cluster, 8), found, fail_and_repair)
    assert_same(pruned, finished(Unpruned(Fabric(cluster, 8)), found, fail_and_repair))
    before = [i for i, end in enumerate(healthy) if end < middle_ps]
    assert before
    assert all(pruned[i] == healthy[i] for i in before)
    slowed = [i for i, (start_ps, _) in enumerate(found) if start_ps < middle_ps and pruned[i] > healthy[i]]
    assert slowed


def striped(found, groups):
    """Node-level transfers, each in equal parts over all lanes."""
    return [
        (start_ps, [(size // groups, Port(a.node, i), Port(b.node, i)) for i in range(groups)])
        for start_ps, [(size, a, b)] in found
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("changes", [(), (NARROW_LEAVES,)], ids=["non-blocking", "oversubscribed"])
def test_eight_rails_that_are_alike_are_one_flow_to_the_picosecond(changes, seed, tmp_path):
    """Merged rates are eightfold, a power of two, so not even the last bit differs; within a pod."""
    cluster = cluster_of(tmp_path, changed(SMALL, *changes))
    assert lanes(cluster, tp8()) == 8
    found = transfers(Random(seed), 60, range(4), range(8), gap_ps=10**9)
    merged = finished(Fabric(cluster, 8), found)
    assert merged == finished(Fabric(cluster, 1), striped(found, 8))
    assert max(merged) > found[-1][0]


@pytest.mark.parametrize("seed", range(3))
def test_rails_that_share_spines_are_one_flow_too(seed, tmp_path):
    """Between pods eight flows meet on one link, and sums are rounded: within a picosecond."""
    cluster = cluster_of(tmp_path, changed(SMALL, NARROW_CORES))
    found = transfers(Random(seed), 60, range(6), range(12), gap_ps=10**9)
    assert_same(finished(Fabric(cluster, 8), found), finished(Fabric(cluster, 1), striped(found, 8)))


def test_rails_that_are_not_alike_are_not_merged(tmp_path):
    """Rail 3 of unit 0 has three cables for four nodes; merged, the others would lend it theirs.

    Four nodes send at once: 31 of 32 cables in all, but on rail 3 each has three quarters of a cable.
    """
    even = cluster_of(tmp_path, listed_fabric())
    uneven = cluster_of(tmp_path, listed_fabric(narrow=[(0, 3)]))
    assert lanes(even, tp8()) == 8
    assert lanes(uneven, tp8()) == 1
    cable = uneven.rate_bytes_per_s / PS_PER_S
    size = 8 * 10**9
    found = [(0, [(size, Port(node, 0), Port(node + 4, 0))]) for node in range(4)]
    apart = finished(Fabric(uneven, lanes(uneven, tp8())), striped(found, 8))
    assert apart == pytest.approx([size / 8 / (0.75 * cable)] * 4, abs=1)
    assert finished(Fabric(uneven, 8), found) == pytest.approx([size / (7.75 * cable)] * 4, abs=1)


def test_one_slow_rail_is_slow_for_its_own_bytes_only(tmp_path):
    """The parts on the other rails end as on the even fabric, those on the narrow one later."""
    ends = []
    for narrow in ([], [(0, 3)]):
        fabric = Fabric(cluster_of(tmp_path, listed_fabric(narrow=narrow)), 1)
        found = [
            (0, [(10**9, Port(node, rail), Port(node + 4, rail))]) for node in range(4) for rail in range(8)
        ]
        ends.append(finished(fabric, found))
    for i, (even, uneven) in enumerate(zip(*ends, strict=True)):
        assert uneven == even if i % 8 != 3 else uneven > 1.3 * even
