"""Benchmark of a full pool of KV blocks: the Mooncake-like load of the flagship, and 1 TB lent by each node.

The pool starts full: each node's memory first gets prompts that nobody will ask for again, of as many blocks
as prompts have in the mean; then the requests before the window come and go as usual.
"""

from __future__ import annotations

from array import array
from itertools import count

from sim.api import Simulation, load
from sim.bench.figures import Figures
from sim.bench.replay import SCENARIOS, replayed
from sim.kvpool.pool import KvPool
from sim.resolve import resolve
from sim.tables.recorder import MemorySink, Recorder

CASES = ("pool",)
SCENARIO = SCENARIOS / "mooncake-b200-4000.yaml"
POOL = ("kv_pool.policy=pooled", "kv_pool.dram=1 TB")
PROMPT_BLOCKS = 24


def measure(name: str) -> Figures:
    """Replay the load on a full pool in this process."""
    simulation = Simulation(resolve(load(SCENARIO, POOL)), Recorder(MemorySink()))
    moves = simulation.serving.moves
    assert moves is not None
    fill(moves.pool)
    return replayed(name, simulation)


def fill(pool: KvPool) -> int:
    """Fill all memories with prompts that have nothing in common; the number of blocks."""
    blocks, ids = 0, count(-1, -PROMPT_BLOCKS)
    for cache in pool.caches:
        while cache.free:
            last = next(ids)
            length = min(PROMPT_BLOCKS, cache.free)
            cache.keep(array("q", range(last, last - length, -1)))
            blocks += length
    return blocks
