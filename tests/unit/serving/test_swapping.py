"""Sequences that give way to host memory: by pencil and paper, over real links, and as users see it."""

from pathlib import Path

import pytest
from models.colocating import colocated, served, times
from models.rebuild import rows

from sim.api import Silent, Simulation, load
from sim.resolve import resolve
from sim.serving.plan import SwapPlan
from sim.tables.recorder import MemorySink, Recorder

SCENARIO = Path(__file__).parents[3] / "scenarios" / "colocated.yaml"

SETS = (
    "workload.arrivals.rate=14 req/s",
    "workload.output.median_tokens=1500",
    "workload.input.median_tokens=6000",
    "pools.serve.replicas=2",
    "pools.serve.preemption=swap",
    "pools.serve.swap_space=16 GiB",
    "run.duration=40 s",
)


def test_who_finds_no_page_waits_in_host_memory():
    """As where it is computed anew, but 2 pages of 16 bytes go out in 32 ps and come back in as many."""
    serve = colocated("prefill_first", kv_tokens=20, reserves_whole=False, swap=SwapPlan(2, 16))
    found, played = served(serve, (0, 8, 5), (0, 8, 3))
    # Both prompts to 26 | out to 58 | four steps to 458 | in to 490 | two steps
    assert times(found) == [(26, 158, 458), (26, 590, 690)]
    assert [row["phase_preempted_ps"] for row in found] == [0, 490 - 26]
    [replica] = played.serving.colocated.replicas
    assert (replica.preemptions, replica.swapped, replica.shortages, replica.host_pages) == (1, 1, 1, 2)
    assert (replica.prompt_tokens, replica.tokens) == (16, 5 + 3)
    assert replica.busy_ps == 690 - 64


def test_who_finds_no_room_in_host_memory_is_computed_anew():
    serve = colocated("prefill_first", kv_tokens=20, reserves_whole=False, swap=SwapPlan(1, 16))
    found, played = served(serve, (0, 8, 5), (0, 8, 3))
    assert times(found) == [(26, 126, 426), (26, 445, 545)]
    [replica] = played.serving.colocated.replicas
    assert (replica.preemptions, replica.swapped, replica.host_pages) == (1, 0, 1)


def test_who_leaves_gives_its_host_memory_back():
    """The second user leaves at 200, while what it has lies in host memory."""
    serve = colocated("prefill_first", kv_tokens=20, reserves_whole=False, swap=SwapPlan(2, 16))
    _, played = served(serve, (0, 8, 5), (0, 8, 3, (), -1, 0, 200), cancels=True)
    [replica] = played.serving.colocated.replicas
    assert (replica.swapped, replica.host_pages, replica.requests) == (1, 2, 1)
    assert (replica.memory.claimed, replica.waiting) == (0, [])
    second = next(row for row in rows(played.requests) if row["request_id"])
    assert second["phase_preempted_ps"] == 200 - 26


@pytest.mark.parametrize("swaps", [False, True])
def test_copies_cross_the_links_of_its_gpus_and_its_hosts(swaps):
    """Two replicas of an HGX node with 60 GB less memory than they need: what goes out comes back."""
    sets = SETS if swaps else [part for part in SETS if "swap" not in part]
    sink = MemorySink()
    ready = Simulation(resolve(load(SCENARIO, sets)), Recorder(sink))
    ready.play(Silent())
    serving = ready.serving
    serving.network.settle()
    carried = {link.kind: 0.0 for link in serving.fabric.described}
    for link, size in zip(serving.fabric.described, serving.network.carried, strict=True):
        carried[link.kind] += size
    events = [row for row in sink.sample_rows if row[1] == "out_of_memory"]
    replicas = serving.colocated.replicas
    assert len(events) == sum(replica.shortages for replica in replicas) > 0
    assert all(value > 0 for *_, value in events)
    assert {name for _, _, name, _, _ in events} <= {"serve-0", "serve-1"}
    assert sum(replica.preemptions for replica in replicas) >= len(events)
    if not swaps:
        assert not any(carried.values())
        return
    page = serving.plan.colocated.batching.swap.rank_page_bytes * 2  # both ranks
    assert carried["pcie_up"] == pytest.approx(carried["pcie_down"])
    assert carried["dram"] == pytest.approx(carried["pcie_up"] + carried["pcie_down"])
    assert carried["pcie_up"] > page * sum(replica.swapped for replica in replicas) > 0
    assert carried["pcie_up"] / page == pytest.approx(round(carried["pcie_up"] / page))
