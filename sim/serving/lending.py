"""The pool of KV blocks of a scenario: what nodes lend, in blocks, and how it is used.

Model: a block takes on each rank what its tokens' KV take there, copies of heads included, so it takes
that times the ranks of a replica in host memory and on NVMe. What the scenario says goes for every node that
lends, and for all nodes where the topology says nothing. An engine that does not move KV layer by layer does
not overlap it with computing, unless the scenario says so.
Units: blocks.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.catalog import Engine
from sim.config.kvpool import KvPool
from sim.serving.plan import KvPlan, LostPart
from sim.timing.placement import Shard
from sim.topology.cluster import Cluster


def lent_blocks(form: KvPool, cluster: Cluster, block_bytes: int) -> tuple[Mapping[int, int], ...]:
    """For each tier what each node lends; no tier where nobody lends anything."""
    if form.policy == "none":
        return ()
    said = {
        "dram": form.blocks * block_bytes if form.blocks is not None else form.dram,
        "nvme": form.nvme,
    }
    is_silent = not any(one.dram or one.nvme for one in cluster.lent)
    tiers = []
    for name, size in said.items():
        lent = {}
        for node, one in enumerate(cluster.lent):
            does_lend = is_silent or one.dram or one.nvme
            own = getattr(one, name) if size is None else size if does_lend else 0
            if own // block_bytes:
                lent[node] = own // block_bytes
        tiers.append(lent)
    return tuple(tiers) if any(tiers) else ()


def kv_plan(form: KvPool, cluster: Cluster, shard: Shard, block_tokens: int, engine: Engine) -> KvPlan:
    """Everything that serving needs to know of the pool."""
    rank_block_bytes = shard.kv_bytes_per_token_per_gpu * block_tokens
    overlaps, streams = form.overlap_fetch, form.stream_out
    return KvPlan(
        lent=lent_blocks(form, cluster, rank_block_bytes * shard.tp),
        is_shared=form.policy == "pooled",
        hbm=form.hbm and form.policy != "none",
        keeps_partial=form.partial_blocks,
        eviction=form.eviction,
        ttl_ps=form.ttl,
        write=form.write,
        replicate=form.replicate,
        max_copies=form.max_copies,
        rebalance_ps=form.rebalance,
        fetch=form.fetch,
        overlaps=engine.is_layerwise if overlaps is None else overlaps,
        streams=engine.is_layerwise if streams is None else streams,
        gpudirect_storage=form.gpudirect_storage,
        stale_ps=form.stale,
        lost=tuple(LostPart(lost.at, lost.node) for lost in form.lost),
        rank_block_bytes=rank_block_bytes,
        layers=shard.model.layers,
        fetch_start_ps=engine.fetch_start_ps,
        fetch_bytes_per_s=engine.fetch_bytes_per_s,
        save_bytes_per_s=engine.save_bytes_per_s,
    )
