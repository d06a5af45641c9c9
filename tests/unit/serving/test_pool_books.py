"""What a run says of its pool: the books between two instants by hand, whole runs against rows and links."""

import pytest
from models.hosts import BLOCK_BYTES, Stage, pooled_plan, prompt
from models.studies import SMALL, changed, played, with_shared_prefixes

from sim.kvpool.pool import DRAM, NVME
from sim.serving.kvuse import KvBooks, kv_pool_use
from sim.tables.uses import HotBlocks, TierUse

A = (1, 2, 3, 4, 5)
B = (11, 12, 13, 14, 15)


def test_the_books_between_two_instants():
    """A is saved at 303; counted is from 999 on.

    At 1000 its five blocks are fetched for a prompt with a sixth, which is written. B drives the last five
    of these six out of host memory of six; all six go down to NVMe. C finds no room, being longer than that.
    """
    long = tuple(range(20, 27))
    requests = [prompt(0, 0, A), prompt(1, 1000, (*A, 6)), prompt(2, 2000, B), prompt(3, 3500, long)]
    stage = Stage(pooled_plan(1, (6,), (50,)), requests)
    stage.play_until(999)
    begin = KvBooks.of(stage.moves)
    stage.play()
    use = kv_pool_use(BLOCK_BYTES, begin, KvBooks.of(stage.moves))
    assert use.tiers == (
        TierUse("dram", capacity_blocks=6, cached_blocks=6, read_bytes=400, written_bytes=80 + 400),
        TierUse("nvme", capacity_blocks=50, cached_blocks=6, read_bytes=0, written_bytes=480),
    )
    assert use.read_over == {"dram": 400, "pcie_down": 400}
    assert use.written_over == {"pcie_up": 480, "dram": 480 + 480, "nvme": 480}
    assert use.counts == {"skipped": 1}
    assert use.hottest == (HotBlocks(first=1, blocks=1, reads=1, copies=2),)  # others were nowhere meanwhile
    assert (stage.has(DRAM, 0, A), stage.has(NVME, 0, A)) == (1, 5)


KV = "kv_pool: {policy: pooled, hbm: false, dram: 5 GB, nvme: 20 GB, fetch: always, %s}\nworkload:"
RULES = {
    "beside what is there": "replicate: never",
    "copies and streams": "replicate: always, stream_out: true, overlap_fetch: true",
    "rebalanced": "replicate: never, rebalance: 500 ms",
}


HASHED = changed(SMALL, ("link: infiniband-ndr", "link: infiniband-ndr\n  routing: {kind: ecmp, qps: 2}"))
CASES = [
    *((rules, SMALL, ()) for rules in RULES),
    ("copies and streams", HASHED, ()),
    ("copies and streams", SMALL, ("pools.decode.tp=4",)),
]


@pytest.mark.parametrize(("rules", "topology", "sets"), CASES)
def test_figures_of_a_run_are_those_of_its_rows_and_links(tmp_path, rules, topology, sets):
    """The window has all of the run, so what is booked is what links carried, and tokens are whole blocks."""
    window = ("workload.limit=150", "run.duration=30 s", "router.policy=round_robin")
    scenario = changed(with_shared_prefixes(), ("workload:", KV % RULES[rules]))
    run = played(tmp_path, *window, *sets, scenario=scenario, topology=topology)
    pool, rows = run.figures["kv_pool"], run.requests
    assert (rows["status"] == "finished").all()
    fetched = rows[rows["dram_tokens"] + rows["nvme_tokens"] > 0]
    assert pool["fetches"]["requests"] == len(fetched) > 50
    for tier in ("hbm", "dram", "nvme"):
        assert pool["hit_tokens"][tier] == rows[f"{tier}_tokens"].sum()
    assert pool["tokens_not_recomputed"] == rows["cached_tokens"].sum()
    assert pool["remote_tokens"] == rows["remote_tokens"].sum() > 0
    dram, nvme = pool["tiers"]
    if rules != "rebalanced":
        read_tokens = (dram["read_bytes"] + nvme["read_bytes"]) / pool["block_bytes"] * 512
        wanted = (rows["dram_tokens"] + rows["nvme_tokens"]).sum()
        assert wanted <= read_tokens <= wanted + 512 * len(fetched)
    carried = run.links.groupby("kind", observed=True)["carried_bytes"].sum()
    handed_over = rows["input_tokens"].sum() * pool["block_bytes"] / 512
    booked = {
        kind: pool["read_over_bytes"].get(kind, 0) + pool["written_over_bytes"].get(kind, 0)
        for kind in ("pcie_up", "pcie_down", "dram", "nvme", "nvme_write", "dram_rdma", "nic_tx", "nic_rx")
    }
    for kind, size in booked.items():
        beside = handed_over if kind.startswith("nic") else 0
        assert carried.get(kind, 0.0) == pytest.approx(size + beside)
    assert (pool["counts"].get("replicated", 0) > 0) == (rules == "copies and streams")
    assert (pool["counts"].get("rebalanced", 0) > 0) == (rules == "rebalanced")
    for tier in (dram, nvme):
        assert 0 < tier["used_fraction"] <= 1
        assert 0 <= max(run.figures["kv_pool_over_time"][tier["name"]]) <= 1
    assert 0 < pool["hottest"][0]["reads"] <= len(fetched)
