"""Nodes with GPUs, host memory, NVMe and one NIC each, as a fabric with rates of one's own choice.

Rates are in bytes per picosecond and powers of two, so that times worked out by hand are exact. A way has
the latency of its kind, whatever it crosses.
"""

from dataclasses import replace

from models.play import plan, pool, seat
from models.poolflows import PoolFlows
from models.rebuild import rows
from sim.clock import Clock, Errand
from sim.kvpool.pool import Place
from sim.network.links import Links
from sim.serving.cluster import Serving
from sim.serving.plan import KvPlan, LostPart, RouterPlan
from sim.tables.recorder import MemorySink, Recorder
from sim.tables.schema import PS_PER_S
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

RATES = {
    "pcie_down": 4.0,
    "pcie_up": 4.0,
    "dram": 64.0,
    "nvme": 0.5,
    "nic_tx": 1.0,
    "nic_rx": 1.0,
    "nvlink": 128.0,
}
LATENCY_PS = {"pcie": 3, "fabric": 7, "nvme": 5, "nvlink": 1}


class Hosts:
    """The ways between nodes and within them; a link is known by its kind and its node."""

    is_fixed = True
    queue_pairs = 1
    groups = 1

    def __init__(self, rates=None, latency_ps=None):
        self.rates = RATES | (rates or {})
        self.latency_ps = LATENCY_PS | (latency_ps or {})
        self.table = Links()

    @property
    def described(self):
        return self.table.described

    def number(self, kind, node):
        return self.table.make((kind, node), f"node {node} {kind}", self.rates[kind] * PS_PER_S)

    def link(self, kind, node):
        return self.table.solver[self.number(kind, node)]

    def way(self, kind, *links):
        return self.table.path([self.number(*link) for link in links], self.latency_ps[kind])

    def sending(self, node):
        return len(self.link("nic_tx", node).flows)

    def spare(self, node):
        link = self.link("nic_tx", node)
        return link.capacity / (len(link.flows) + 1)

    def wait_ps(self, source, target):
        return self.latency_ps["nvlink" if source.node == target.node else "fabric"]

    def gpu_to_gpu(self, source, target, _queue_pair=0):
        if source.node == target.node:
            return self.way("nvlink", ("nvlink", source.node))
        return self.way("fabric", ("nic_tx", source.node), ("nic_rx", target.node))

    def gpu_to_dram(self, source, target):
        if target == source.node:
            return self.way("pcie", ("pcie_up", target), ("dram", target))
        return self.way("fabric", ("nic_tx", source.node), ("nic_rx", target), ("dram", target))

    def dram_to_gpu(self, source, target):
        if source == target.node:
            return self.way("pcie", ("dram", source), ("pcie_down", source))
        return self.way("fabric", ("dram", source), ("nic_tx", source), ("nic_rx", target.node))

    def dram_to_dram(self, source, target, _lane):
        ends = (("nic_tx", source), ("nic_rx", target), ("dram", target))
        return self.way("fabric", ("dram", source), *ends)

    def nvme_to_gpu(self, node, _target, straight):
        bounce = () if straight else (("dram", node), ("dram", node))
        return self.way("nvme", ("nvme", node), *bounce, ("pcie_down", node))

    def nvme_to_dram(self, node):
        return self.way("nvme", ("nvme", node), ("dram", node))

    def dram_to_nvme(self, node):
        return self.way("nvme", ("dram", node), ("nvme", node))

    def network(self, env):
        return PoolFlows(env, self)

    def carried(self):
        """Bytes by kind and node of each link that has carried any."""
        links = zip(self.described, self.table.carried, strict=True)
        return {link.name: carried for link, carried in links if carried}


PREFILL_PS = 10
"""For each token."""

BLOCK_TOKENS = 4
BLOCK_BYTES = 80
"""A token that is handed over takes a quarter of it."""

DECODER = 99
"""The node of the decode replica."""


def pooled_plan(
    nodes=2, dram=(), nvme=(), ranks=1, hbm_blocks=100, decode_kv_tokens=10**6, limits=None, **kv
):
    """A prefill replica on each of some nodes, and a decode replica on its own.

    Nodes lend `dram` and `nvme` blocks in their order. Each rank is at a port of its own. Prompts go round
    robin. Blocks are not kept in HBM, and are fetched in any case, unless that is asked for.
    """
    timing = FixedTiming(prefill_per_token_ps=PREFILL_PS, decode_base_ps=1)
    lent = tuple({node: size for node, size in enumerate(one) if size} for one in (dram, nvme))
    kv = {"hbm": False, "is_shared": True, "fetch": "always", "rank_block_bytes": BLOCK_BYTES // ranks} | kv
    seats = [seat(node, ranks, groups=ranks) for node in range(nodes)]
    prefill = pool("prefill", seats, timing, hbm_blocks * 4, **(limits or {}))
    return plan(
        replace(prefill, gpus_per_replica=ranks),
        pool("decode", [seat(DECODER)], timing, decode_kv_tokens),
        router=RouterPlan("round_robin", "least_loaded", 1.0),
        reuse=True,
        kv_bytes_per_token=BLOCK_BYTES // BLOCK_TOKENS,
        kv_heads=ranks,
        block_tokens=BLOCK_TOKENS,
        kv=KvPlan(lent=lent, **kv),
    )


def prompt(number, at_ps, blocks, output=1):
    """A request for a prompt of whole blocks; one token of output ends with its prefill."""
    return Request(number, at_ps, BLOCK_TOKENS * len(blocks), output, tuple(blocks))


class Stage:
    """The engine on some hosts, with blocks put where they are to lie before the first request."""

    def __init__(self, serving_plan, requests, hosts=None, kept=()):
        self.hosts = hosts or Hosts()
        self.clock, self.sink = Clock(), MemorySink()
        self.serving = Serving(self.clock, serving_plan, self.hosts, Recorder(self.sink))
        self.moves = self.serving.moves
        self.pool = self.moves.pool
        for tier, node, blocks in kept:
            self.cache(tier, node).keep(tuple(blocks))
            self.pool.touched(self.cache(tier, node), 0)
        Errand(self.serving.offer(requests))

    def cache(self, tier, node):
        return self.pool.caches[self.pool.places.index(Place(tier, node))]

    def has(self, tier, node, blocks):
        """How many leading blocks of a prompt are there."""
        return self.cache(tier, node).hits(tuple(blocks))

    def play(self):
        """Let everything happen; rows by request id."""
        while self.clock.advance(100):
            pass
        return self.rows()

    def play_until(self, at_ps):
        """Let everything happen up to an instant, that included."""
        while self.clock._queue and self.clock._queue[0][0] <= at_ps:
            self.clock.advance(1)

    def found_at(self, tier, node, blocks):
        """Let everything happen until a place has all of some blocks; when that is."""
        while self.has(tier, node, blocks) < len(blocks):
            assert self.clock.advance(1), "nothing is left to happen"
        return self.clock.now

    def rows(self):
        self.serving.close()
        return {row["request_id"]: row for row in rows(self.sink.request_table())}

    def assert_nothing_is_left(self):
        """No lease, no claim, no flow: all memory is free or cached."""
        memories = [*self.pool.caches, *(replica.memory for replica in self.serving.prefill.replicas)]
        for cache in memories:
            assert (cache.claimed, len(cache._leases), cache._held) == (0, 0, 0)
            assert cache.free + cache.cached == cache.capacity
            assert cache.cached == len(list(cache.contents()))
        assert self.serving.network.active == 0
        assert not self.moves._moving
        assert self.serving.done == self.serving.arrived


def staged(serving_plan, requests, hosts=None, kept=()):
    """Play to the end; the stage, and its rows by request id."""
    stage = Stage(serving_plan, requests, hosts, kept)
    found = stage.play()
    stage.assert_nothing_is_left()
    return stage, found


def drawn_pool(dice, plan_of_serving, nodes, lost=False):
    """A plan with a pool on some nodes, small enough that everything is evicted, and used in some way.

    Most often prompts go in turn, so that what one node has is wanted on another.
    """
    hbm = dice.random() < 0.6
    block_tokens = plan_of_serving.block_tokens
    lent = [
        {node: dice.randint(3, 20) for node in range(nodes) if dice.random() < chance}
        for chance in (0.9, 0.4)
    ]
    lent[0][0] = dice.randint(5, 30)
    eviction = dice.choice(("lru", "lru", "lfu", "length_aware", "ttl"))
    pool_plan = KvPlan(
        lent=tuple(lent),
        is_shared=dice.random() < 0.7,
        hbm=hbm,
        keeps_partial=dice.random() < 0.7,
        eviction=eviction,
        ttl_ps=dice.choice((100, 500)) if eviction == "ttl" else None,
        write=dice.choice(("through", "through", "back", "second_use")) if hbm else "through",
        replicate=dice.choice(("bottleneck", "always", "always", "never")),
        max_copies=dice.choice((None, 1, 2)),
        rebalance_ps=dice.choice((None, 200)),
        fetch=dice.choice(("estimate", "always", "always", "always", "never")),
        overlaps=dice.random() < 0.5,
        streams=dice.random() < 0.5,
        gpudirect_storage=dice.random() < 0.5,
        lost=tuple(LostPart(dice.randint(0, 1500), node) for node in range(nodes) if dice.random() < 0.3)
        if lost
        else (),
        rank_block_bytes=block_tokens * dice.choice((1, 7, 20)),
        layers=dice.choice((1, 4)),
        fetch_start_ps=dice.choice((0, 3)),
        fetch_bytes_per_s=dice.choice((None, 7e12)),
        save_bytes_per_s=dice.choice((None, 5e12)),
    )
    router = plan_of_serving.router
    if dice.random() < 0.7:
        router = replace(router, policy="round_robin")
    return replace(plan_of_serving, reuse=True, kv=pool_plan, router=router)
