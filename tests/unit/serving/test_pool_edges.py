"""Blocks that go while somebody counts on them, and a pool that is filled before the clock starts."""

from types import SimpleNamespace

import pytest
from models.play import plan, play, pool, seat
from models.wires import OwnWires

from sim.clock import Clock
from sim.kvpool.pool import DRAM, NVME, Place
from sim.network.maxmin import Link
from sim.network.path import Path
from sim.serving.cluster import Serving
from sim.serving.job import FINISHED
from sim.serving.plan import KvPlan
from sim.serving.warm import warm
from sim.tables.recorder import MemorySink, Recorder
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

TIMING = FixedTiming(prefill_per_token_ps=10, decode_base_ps=1)
A, B, C = (1, 2, 3), (4, 5, 6), (7, 8, 9)


class LentWires(OwnWires):
    """Every move to and from the pool has a link of its own, of one byte per picosecond."""

    def __init__(self):
        super().__init__(0)
        self.described = [SimpleNamespace(kind="pcie")]

    def sending(self, _node):
        return 0

    def _own(self, *_):
        return Path((Link(0, 1.0),), (), 0)

    dram_to_gpu = gpu_to_dram = nvme_to_gpu = nvme_to_dram = dram_to_nvme = _own


def plan_with(hbm_blocks, dram, nvme, **kv):
    lent = ({0: dram}, {0: nvme}) if nvme else ({0: dram},)
    return plan(
        pool("prefill", [seat(0)], TIMING, 4 * hbm_blocks),
        pool("decode", [seat(9)], TIMING, 10**6),
        reuse=True,
        kv=KvPlan(lent=lent, rank_block_bytes=1, **kv),
    )


def prompts(*blocks, every_ps=1000):
    return [
        Request(number, number * every_ps, 4 * len(prompt) + 1, 1, prompt)
        for number, prompt in enumerate(blocks)
    ]


@pytest.mark.parametrize("hbm_blocks", [5, 4])
def test_a_prefix_that_its_own_batch_drives_out_is_computed(hbm_blocks):
    """B is written back to make room for A, and takes the place of A in host memory, which was to be read."""
    served = play(plan_with(hbm_blocks, 4, 0, write="back", fetch="always"), prompts(A, B, A), LentWires())
    assert served.serving.moves.counts["broken"] == 1
    assert list(served.requests["status"]) == [FINISHED] * 3
    cache = served.serving.moves.pool.cache(Place(DRAM, 0))
    assert (cache.claimed, cache.cached) == (0, len(list(cache.contents())))
    in_hbm = hbm_blocks - 4  # of A, after B and the block without an id
    assert served.requests["cached_tokens"][2] == 4 * in_hbm
    assert served.requests["dram_tokens"][2] == 0


def warmed(kv_plan, *blocks):
    serving = Serving(Clock(), kv_plan, LentWires(), Recorder(MemorySink()))
    warm(serving.prefill, prompts(*blocks))
    return serving


@pytest.mark.parametrize(("hbm_blocks", "write"), [(20, "through"), (4, "back")])
def test_filling_the_pool_moves_nothing(hbm_blocks, write):
    """What drives out what on the way down is there at once, with the blocks before it."""
    serving = warmed(plan_with(hbm_blocks, 4, 20, write=write), A, B, C, C)
    where = {tier: serving.moves.pool.cache(Place(tier, 0)) for tier in (DRAM, NVME)}
    assert not serving.network._flows
    assert [cache.claimed for cache in where.values()] == [0, 0]
    assert sorted(where[DRAM].contents()) == ([4, 7, 8, 9] if write == "through" else [1, 4, 5, 6])
    assert sorted(where[NVME].contents()) == ([1, 2, 3, 4, 5, 6] if write == "through" else [1, 2, 3])
    assert serving.moves.counts["skipped"] == 0


def test_what_filled_the_pool_expires_too():
    serving = warmed(plan_with(20, 9, 0, eviction="ttl", ttl_ps=500), A, B)
    pool = serving.moves.pool
    assert pool.match(A, 500).longest()[0] == 3
    assert pool.match(A, 501).longest()[0] == 0
