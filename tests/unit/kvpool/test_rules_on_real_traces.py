"""Each eviction rule on real prompts, against one that knows blocks only: no stretches, no shared tree.

Three caches share the tree and take the prompts in turn, so they split each other's stretches all the time.
"""

import gzip
import json
from heapq import heappop, heappush

import pytest

from sim.kvpool.eviction import eviction
from sim.kvpool.tree import PrefixTree
from sim.workload.errors import TraceError
from sim.workload.library import find_trace

pytestmark = pytest.mark.trace

PROMPTS, CACHES, CAPACITY = 3000, 3, 4000


class BlockByBlock:
    """Ranks every block on its own: (how often touched, depth, when touched), as far as its rule asks."""

    def __init__(self, capacity, rule):
        self.capacity = capacity
        self.rule = rule
        self.touched = 0
        self.here = {}
        self.heap = []

    def rank(self, count, depth):
        return {
            "lru": (self.touched, -depth),
            "ttl": (self.touched, -depth),
            "lfu": (count, self.touched, -depth),
            "length_aware": (count, -depth, self.touched),
        }[self.rule]

    def touch(self, blocks):
        self.touched += 1
        for depth, block in enumerate(blocks):
            count = self.here[block][0] + 1 if block in self.here else 1
            self.here[block] = count, self.rank(count, depth)
            heappush(self.heap, (self.here[block][1], block))

    def keep(self, blocks):
        """The number of leading blocks that were here; all are afterwards."""
        hits = next((i for i, block in enumerate(blocks) if block not in self.here), len(blocks))
        self.touch(blocks[:hits])
        room = self.capacity - len(self.here)
        stay = set(blocks[:hits])
        aside = []
        while room < len(blocks) - hits:
            rank, block = heappop(self.heap)
            if block in self.here and self.here[block][1] == rank:
                if block in stay:
                    aside.append((rank, block))
                else:
                    del self.here[block]
                    room += 1
        for entry in aside:
            heappush(self.heap, entry)
        self.touch(blocks)
        return hits


@pytest.fixture(scope="module", params=["mooncake-conversation", "mooncake-synthetic"])
def prompts(request):
    try:
        path = find_trace(request.param)
    except TraceError as absent:
        pytest.skip(f"NOT TESTED: {absent}")
    with gzip.open(path, "rt") as lines:
        return [tuple(json.loads(line)["hash_ids"]) for line, _ in zip(lines, range(PROMPTS), strict=False)]


@pytest.mark.parametrize("rule", eviction.names())
def test_the_same_blocks_are_found_and_kept(prompts, rule):
    tree = PrefixTree()
    caches = [eviction[rule](CAPACITY, tree, number) for number in range(CACHES)]
    twins = [BlockByBlock(CAPACITY, rule) for _ in range(CACHES)]
    hits = evicted = 0
    for turn, blocks in enumerate(prompts):
        number = turn * 7 % 11 % CACHES
        found = caches[number].hits(blocks)
        caches[number].keep(blocks)
        assert found == twins[number].keep(blocks)
        hits += found
        evicted += len(blocks) - found
    assert hits > 5_000
    assert evicted > CACHES * CAPACITY
    for cache, twin in zip(caches, twins, strict=True):
        assert set(cache.contents()) == twin.here.keys()
