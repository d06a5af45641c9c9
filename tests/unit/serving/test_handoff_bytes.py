"""What a handoff puts on the wires: all bytes that there are, no more and no less, over the right ports."""

import pytest
from models.clusters import cluster_of
from models.play import plan, play, pool, seat
from models.studies import SCENARIO, SMALL, changed, played

from sim import api
from sim.network.fabric import Fabric
from sim.resolve import resolve
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

TOPOLOGY_KEY = "  rails: 8"


def routed(routing):
    return changed(SMALL, (TOPOLOGY_KEY, f"{TOPOLOGY_KEY}\n  routing: {routing}"))


def moved(folder, topology=SMALL, scenario=SCENARIO, **how):
    """Bytes that crossed, by kind of link, and those of the KV of all prompts that were moved."""
    run = played(folder, "run.duration=60 s", scenario=scenario, topology=topology, **how)
    plan = resolve(api.load(folder / "scenario.yaml")).plan
    rows = run.requests[run.requests["decode_replica"] >= 0]
    kv_bytes = int(rows["input_tokens"].sum()) * plan.kv_bytes_per_token
    kinds = {}
    for link in run.outcome.links:
        kinds[link.kind] = kinds.get(link.kind, 0) + link.carried_bytes
    return kinds, kv_bytes


def with_tp(prefill, decode):
    return changed(
        SCENARIO,
        ("role: prefill, replicas: 3, tp: 8", f"role: prefill, replicas: 3, tp: {prefill}"),
        ("role: decode, replicas: 3, tp: 8", f"role: decode, replicas: 3, tp: {decode}"),
    )


@pytest.mark.parametrize(
    "routing",
    [
        "{kind: spray}",
        "{kind: ecmp}",
        "{kind: ecmp, qps: 4}",
        "{kind: ecmp, qps: 4, bytes: pooled}",
        "{kind: static}",
        "{kind: ar_flow}",
    ],
)
def test_every_routing_moves_all_bytes(tmp_path, routing):
    kinds, kv_bytes = moved(tmp_path, routed(routing))
    assert kinds["nic_tx"] == kinds["nic_rx"] == pytest.approx(kv_bytes, abs=0.5)


def test_pooled_queue_pairs_are_never_behind_split_ones(tmp_path):
    """The same cables by the same hash: whoever has one for himself takes on what the others cannot carry."""
    means = [
        played(tmp_path, topology=routed(f"{{kind: ecmp, qps: 4, bytes: {kind}, efficiency: 25 %}}")).figures[
            "transfers"
        ]["mean_s"]
        for kind in ("split", "pooled")
    ]
    assert means[1] < 0.9 * means[0]


@pytest.mark.parametrize("queue_pairs", [3, 5, 7])
def test_bytes_that_queue_pairs_do_not_divide_are_moved_too(tmp_path, queue_pairs):
    kinds, kv_bytes = moved(tmp_path, routed(f"{{kind: ecmp, qps: {queue_pairs}}}"))
    assert kinds["nic_tx"] == pytest.approx(kv_bytes, abs=0.5)


@pytest.mark.parametrize(
    ("prefill", "decode", "handed_over"),
    [(8, 8, 0), (8, 4, 1 / 2), (4, 8, 1 / 2), (2, 8, 3 / 4), (8, 1, 7 / 8)],
)
def test_unequal_parallelism_moves_one_copy(tmp_path, prefill, decode, handed_over):
    """Eight heads on at most eight ranks: nobody needs a copy of what another has.

    Bytes leave by the rails that they arrive on; what was computed beside others crosses NVLink first.
    """
    kinds, kv_bytes = moved(tmp_path, scenario=with_tp(prefill, decode))
    assert kinds["nic_tx"] == kinds["nic_rx"] == pytest.approx(kv_bytes, abs=0.5)
    assert kinds.get("nvlink_tx", 0) == kinds.get("nvlink_rx", 0)
    assert kinds.get("nvlink_tx", 0) == pytest.approx(handed_over * kv_bytes, abs=0.5)


def test_over_the_spines_nothing_is_handed_over(tmp_path):
    topology = changed(SMALL, (TOPOLOGY_KEY, f"{TOPOLOGY_KEY}\n  other_rail: spine"))
    kinds, kv_bytes = moved(tmp_path, topology, with_tp(8, 4))
    assert "nvlink_tx" not in kinds
    assert kinds["leaf_up"] == kinds["leaf_down"] > kv_bytes / 2
    assert kinds["nic_tx"] == pytest.approx(kv_bytes, abs=0.5)


def test_without_gpudirect_every_byte_crosses_host_memory_four_times(tmp_path):
    topology = changed(SMALL, (TOPOLOGY_KEY, f"{TOPOLOGY_KEY}\n  gpudirect: false"))
    kinds, kv_bytes = moved(tmp_path, topology)
    assert kinds["dram"] == pytest.approx(4 * kv_bytes, abs=2)
    assert kinds["pcie_up"] == kinds["pcie_down"] == pytest.approx(kv_bytes, abs=0.5)


def transfer_times(folder, routing, seed=0):
    """Four prompts at once, ten times, on one rail: from each node of a unit to one of the next."""
    fabric = Fabric(cluster_of(folder, routed(routing)), 1, seed)
    timing = FixedTiming(prefill_base_ps=10**6, decode_base_ps=10**6)
    one = plan(
        pool("prefill", [seat(node) for node in range(4)], timing, 10**9),
        pool("decode", [seat(node) for node in range(4, 8)], timing, 10**9),
        kv_bytes_per_token=10**6,
    )
    requests = [Request(number, number // 4 * 10**12, 1000, 2, ()) for number in range(40)]
    return play(one, requests, fabric).requests["phase_transfer_ps"].tolist()


def test_without_shared_cables_transfers_that_start_together_take_equally_long(tmp_path):
    assert len(set(transfer_times(tmp_path, "{kind: spray}"))) == 1


def test_by_hash_some_of_them_share_a_cable(tmp_path):
    """Four flows on four cables miss each other with one seed in ten, and some share one with the others."""
    ratios = []
    for seed in range(6):
        times = transfer_times(tmp_path, "{kind: ecmp}", seed)
        ratios.append(max(times) / min(times))
    assert sum(ratio > 1.9 for ratio in ratios) >= 2


def test_least_loaded_sees_those_that_start_at_the_same_instant(tmp_path):
    """Four cables up and four flows: whoever starts next finds an empty one."""
    alone = transfer_times(tmp_path, "{kind: spray}")
    assert transfer_times(tmp_path, "{kind: ar_flow}") == alone
