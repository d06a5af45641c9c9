"""What caps a flow by itself: its queue pairs and copy engines, from files and the catalogue to the end."""

from dataclasses import replace
from random import Random

import pytest
from models.bench import CAPS, Bench
from models.clusters import B200_4000, SMALL, changed, cluster_of
from models.filling import transfer_ends
from models.studies import played

from sim.clock import TIMER, Clock
from sim.network.fabric import Fabric, Port
from sim.network.flow import Pace
from sim.network.flows import FlowNetwork
from sim.network.parts import Pooled, dealt
from sim.network.path import Cap, tightest

RAILS = "  rails: 8"
GB_PER_S = 1e-3
"""In bytes per picosecond."""


def test_a_capped_flow_leaves_the_rest_to_others():
    """Of 10: at most 2 for one, 8 for the other until it has gone."""
    bench = Bench(10)
    bench.send_at(0, 0, (40, [0], 2.0))
    bench.send_at(0, 1, (80, [0]))
    assert bench.finish() == {0: 20, 1: 10}
    assert bench.told == {0: (CAPS, 0), 1: (0, 2)}
    assert bench.network.carried == [120]


def test_each_flow_has_the_cap_for_itself():
    bench = Bench(10)
    way = bench.path([0], 2.0)
    for _ in range(3):
        bench.network.send([(40, way)])
    bench.clock.advance(3)
    assert bench.clock.now == 20


def test_a_cap_that_is_wide_enough_changes_nothing():
    ends = []
    for cap in (None, 10.0, 11.0):
        bench = Bench(10, 4)
        bench.send_at(0, 0, (40, [0, 1], cap))
        bench.send_at(3, 1, (40, [0], cap))
        ends.append(bench.finish())
    assert ends[0] == ends[1] == ends[2]


def test_each_queue_pair_of_a_pool_has_a_cap():
    """Links of 1 and 9, caps of 3: 1 + 3."""
    bench = Bench(1, 9)
    bench.send_at(0, 0, (40, [[0], [1]], 3.0))
    assert bench.finish() == {0: 10}
    assert bench.network.carried == pytest.approx([10, 30])
    assert bench.told == {0: (CAPS, 0)}


@pytest.mark.parametrize("seed", range(20))
def test_histories_with_caps_end_when_a_recomputation_says(seed):
    """To the recomputation a cap is a link that one flow crosses."""
    dice = Random(seed)
    capacities = [(2 * dice.randint(200, 2000) + 1) / 1024 for _ in range(4)]
    bench, transfers, caps, start_ps = Bench(*capacities), [], [], 0
    for number in range(40):
        start_ps += dice.choice((0, 0, 50, 333, 2000))
        size, path = dice.randint(1, 4000), dice.sample(range(4), dice.randint(1, 3))
        cap = dice.choice((None, (2 * dice.randint(50, 900) + 1) / 1024))
        bench.send_at(start_ps, number, (size, path, cap))
        if cap is not None:
            path = [*path, 4 + len(caps)]
            caps.append(cap)
        transfers.append((start_ps, size, path))
    ends = bench.finish()
    found = [ends[number] for number in range(40)]
    assert found == transfer_ends(transfers, capacities + caps)
    assert found != transfer_ends(transfers, capacities + [10**6] * len(caps))


def test_of_several_caps_the_tightest_counts():
    narrow, wide = Cap(3, 1.0), Cap(4, 2.0)
    assert tightest(wide, None, narrow) is narrow
    assert tightest(None, None) is None


@pytest.fixture
def fabric(tmp_path):
    """Make the fabric of twelve nodes with changes to its text."""

    def make(*changes, lanes=1, text=SMALL):
        return Fabric(cluster_of(tmp_path, changed(text, *changes)), lanes)

    return make


def routing(written):
    return (RAILS, f"{RAILS}\n  routing: {written}")


QUEUE_PAIRS = routing("{queue_pair_rate: 20 GB/s}")
COPIES = ("count: 12", "count: 12, copy_engine_rate: 40 GB/s")
STAGED = (RAILS, f"{RAILS}\n  gpudirect: false")


def cap(fabric, path):
    """What caps flows on a path, in words, and its rate in GB/s."""
    if path.cap is None:
        return None
    link = fabric.described[path.cap.id]
    assert link.is_cap
    assert link.capacity_bytes_per_s == pytest.approx(path.cap.rate * 1e12)
    return link.kind, link.name, path.cap.rate / GB_PER_S


def test_without_a_word_nothing_is_capped(fabric):
    one = fabric()
    paths = [one.gpu_to_gpu(Port(0, 0), Port(5, 0)), one.dram_to_gpu(0, Port(0, 0)), one.nvme_to_dram(0)]
    assert [path.cap for path in paths] == [None, None, None]
    assert not any(link.is_cap for link in one.described)


def test_a_queue_pair_caps_whatever_crosses_nics(fabric):
    one, told = fabric(QUEUE_PAIRS), ("queue_pair", "queue pair of a flow", 20)
    here, there = Port(0, 3), Port(5, 3)
    for path in (
        one.gpu_to_gpu(here, there),
        one.gpu_to_gpu(here, Port(5, 6)),
        one.dram_to_gpu(0, there),
        one.gpu_to_dram(here, 5),
        one.dram_to_dram(0, 5, 3),
    ):
        assert cap(one, path) == told
        assert path.cap.id not in path.counted
    for path in (one.gpu_to_gpu(here, Port(0, 4)), one.gpu_to_dram(here), one.dram_to_gpu(0, here)):
        assert path.cap is None


def test_a_lane_of_several_rails_has_a_queue_pair_on_each(fabric):
    assert cap(one := fabric(QUEUE_PAIRS, lanes=4), one.gpu_to_gpu(Port(0, 0), Port(5, 0)))[2] == 80


def test_a_rail_of_several_nics_has_a_queue_pair_on_each(fabric):
    """Four of 100 Gb/s beside each GPU of a p5."""
    text = (B200_4000.parent / "h100-2048-efa.yaml").read_text()
    one = fabric(("  routing: {", "  routing: {queue_pair_rate: 5 GB/s, "), text=text)
    assert one.cluster.nics_on_rail(0) == 4
    assert cap(one, one.gpu_to_gpu(Port(0, 1), Port(1, 1)))[2] == pytest.approx(20)


@pytest.mark.parametrize(
    ("qps", "bytes_", "reached"), [(1, "split", 20), (2, "split", 40), (2, "pooled", 40)]
)
def test_queue_pairs_add_up_to_the_rate_of_the_nic(fabric, qps, bytes_, reached):
    one = fabric(routing(f"{{kind: ecmp, qps: {qps}, bytes: {bytes_}, queue_pair_rate: 20 GB/s}}"))
    clock = Clock()
    network = FlowNetwork(clock, one.table.carried)
    paths = [one.gpu_to_gpu(Port(0, 0), Port(1, 0), pair) for pair in one.pairs(0, 1)]
    told = []
    network.send(dealt(10**9, paths, one.is_pooled)).callbacks.append(lambda event: told.append(event._value))
    while clock.advance(10):
        pass
    assert 10**9 / clock.now / GB_PER_S == pytest.approx(reached)
    assert (one.described[told[0].link].kind, told[0].waited_ps) == ("queue_pair", 0)
    assert one.table.carried[told[0].link] == 0


def test_the_topology_says_more_than_the_catalogue(fabric):
    one = fabric().cluster
    known = replace(one, link=replace(one.link, queue_pair_bytes_per_s=30e9))
    assert one.queue_pair_bytes_per_s is None
    assert known.queue_pair_bytes_per_s == 30e9
    written = fabric(QUEUE_PAIRS).cluster
    assert replace(written, link=known.link).queue_pair_bytes_per_s == 20e9


def test_a_copy_engine_caps_copies_between_gpu_and_host(fabric):
    one, told = fabric(COPIES), ("copy_engine", "copy engine of a flow", 40)
    here = Port(0, 3)
    for path in (
        one.gpu_to_dram(here),
        one.dram_to_gpu(0, here),
        one.nvme_to_gpu(0, here, gpudirect_storage=False),
        one.gpu_to_nvme(here, gpudirect_storage=False),
    ):
        assert cap(one, path) == told
    for path in (
        one.nvme_to_gpu(0, here),
        one.gpu_to_nvme(here),
        one.nvme_to_dram(0),
        one.gpu_to_gpu(here, Port(1, 3)),
        one.dram_to_gpu(1, here),
    ):
        assert path.cap is None


def test_a_lane_of_several_gpus_has_a_copy_engine_of_each(fabric):
    assert cap(one := fabric(COPIES, lanes=4), one.gpu_to_dram(Port(0, 1)))[2] == 160


def test_what_is_staged_is_capped_by_queue_pairs_and_copy_engines(fabric):
    one, here, there = fabric(COPIES, STAGED), Port(0, 3), Port(1, 3)
    for path in (one.gpu_to_gpu(here, there), one.gpu_to_dram(here, 1), one.dram_to_gpu(0, there)):
        assert cap(one, path)[0::2] == ("copy_engine", 40)
    assert one.dram_to_dram(0, 1, 3).cap is None
    narrow = fabric(COPIES, (RAILS, f"{STAGED[1]}\n  routing: {{queue_pair_rate: 20 GB/s}}"))
    assert cap(narrow, narrow.gpu_to_gpu(here, there))[0::2] == ("queue_pair", 20)


def test_queue_pairs_share_the_copy_engines_of_their_transfer(fabric):
    one = fabric(COPIES, (RAILS, f"{STAGED[1]}\n  routing: {{kind: ecmp, qps: 4}}"))
    assert cap(one, one.gpu_to_gpu(Port(0, 3), Port(1, 3)))[2] == 10
    assert cap(one, one.gpu_to_dram(Port(0, 3)))[2] == 40


def test_copy_engines_by_group_of_nodes_and_by_catalogue(fabric):
    one = fabric(
        ("count: 12}", "count: 8, copy_engine_rate: 40 GB/s}\n  - {name: old, type: dgx-h100, count: 4}")
    )
    assert one.cluster.copies == (40e9,) * 8 + (None,) * 4
    assert one.dram_to_gpu(9, Port(9, 0)).cap is None


def test_a_run_says_that_queue_pairs_held_its_handoffs_back(tmp_path):
    """At a fifth of what NICs carry nobody waits for a link: the cap is what holds all of them back."""
    topology = changed(SMALL, routing("{queue_pair_rate: 10 GB/s}"))
    run = played(tmp_path, topology=topology)
    assert run.figures["transfers"]["slowest"]["kinds"] == [
        {"kind": "queue_pair", "fraction": 1.0, "waited_fraction": 0.0}
    ]
    assert run.figures["transfers"]["slowest"]["links"][0]["name"] == "queue pair of a flow"
    assert "queue_pair" not in {link["kind"] for link in run.figures["links"]}
    assert "queue_pair" not in set(run.samples["name"])
    (row,) = run.links[run.links["kind"] == "queue_pair"].to_dict("records")
    assert (row["carried_bytes"], row["waited_s"]) == (0, 0)
    assert row["capacity_bytes_per_s"] == 8 * 10e9


@pytest.mark.parametrize(("cap", "end"), [(4.0, (15, CAPS, 0)), (None, (12, 0, 0))])
@pytest.mark.parametrize("pairs", [1, 2], ids=["a flow", "a pool"])
def test_bytes_that_are_paced_while_they_are_made_go_on_at_their_cap(pairs, cap, end):
    """Made at 1 a picosecond for 10; the other 20 then leave at 4, or at the 10 of the link."""
    bench, told = Bench(10), []
    paces = [Pace(91, 1.0 / pairs) for _ in range(pairs)]
    paths = tuple(bench.path([0], cap and cap / pairs).held_by(pace) for pace in paces)
    bench.network.send([(30, Pooled(paths) if pairs > 1 else paths[0])]).callbacks.append(
        lambda event: told.append((bench.clock.now, event._value.link, event._value.waited_ps))
    )
    for pace in paces:
        bench.clock.at(10, TIMER).callbacks.append(lambda _, pace=pace: bench.network.lift(pace))
    bench.finish()
    assert told == [end]
