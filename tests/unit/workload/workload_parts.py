"""What the tests of the workload share: small traces, and a cache written to be obviously right."""

import gzip
from collections import OrderedDict
from pathlib import Path

from sim.base.streams import Streams
from sim.config.scenario import Workload as WorkloadForm
from sim.workload.build import build_workload

DATA = Path(__file__).parents[2] / "data"
S = 10**12
MS = 10**9


def write(path, text):
    """Write a trace, packed if the name says so."""
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def requests_of(seed=1, until_ps=None, **fields):
    """Return the requests of a workload form."""
    return list(build_workload(WorkloadForm(**fields), Streams(seed), until_ps))


def lru_hit_rate(prompts, capacity_tokens, block_tokens=512):
    """Replay block ids through one LRU cache of whole blocks; return hit blocks over all blocks.

    A hit is a block of the leading run of cached blocks. The blocks of a prompt are then made most recent,
    its head last, so that its tail goes first.
    """
    room = None if capacity_tokens is None else capacity_tokens // block_tokens
    cache, hits, total = OrderedDict(), 0, 0
    for blocks in prompts:
        total += len(blocks)
        for block in blocks:
            if block not in cache:
                break
            hits += 1
        for block in reversed(blocks):
            cache[block] = True
            cache.move_to_end(block)
        while room is not None and len(cache) > room:
            cache.popitem(last=False)
    return hits / total


def seen_before(prompts):
    """Return the share of blocks that an earlier prompt had."""
    known, seen, total = set(), 0, 0
    for blocks in prompts:
        seen += sum(block in known for block in blocks)
        total += len(blocks)
        known.update(blocks)
    return seen / total
