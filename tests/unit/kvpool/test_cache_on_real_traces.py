"""The hit rate of one cache on the real Mooncake traces, at eight sizes, as published with the traces.

Published is whole-block LRU over the leading run of cached blocks: the request's blocks go in after its hits
are counted, the head as the most recent. Of a prompt larger than the cache only the head stays.
"""

import gzip
import json

import pytest

from sim.kvpool.cache import Cache
from sim.kvpool.tree import PrefixTree
from sim.workload.errors import TraceError
from sim.workload.library import find_trace

pytestmark = pytest.mark.trace

BLOCK_TOKENS = 512
UNLIMITED = 1 << 40
CAPACITIES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 50_000_000, UNLIMITED)
PUBLISHED = {
    "mooncake-conversation": "0.0419 0.0423 0.0533 0.1361 0.2852 0.3588 0.3635 0.3664",
    "mooncake-synthetic": "0.0168 0.0540 0.1424 0.3094 0.5666 0.6396 0.6396 0.6396",
}


@pytest.fixture(scope="module", params=PUBLISHED)
def trace(request):
    """Its name, and the block ids of its prompts, read without the simulator's readers."""
    try:
        path = find_trace(request.param)
    except TraceError as absent:
        pytest.skip(f"NOT TESTED: {absent}")
    with gzip.open(path, "rt") as lines:
        return request.param, [tuple(json.loads(line)["hash_ids"]) for line in lines]


def hit_rate(prompts, capacity):
    """Share of blocks that are found, one prompt after the other."""
    cache = Cache(capacity, PrefixTree(), 0)
    hits = 0
    for blocks in prompts:
        head = blocks[:capacity]
        hits += cache.hits(blocks)
        lease = cache.admit(head, len(head))
        cache.publish(lease)
        cache.release(lease)
        assert cache.claimed == 0
        assert cache.cached <= capacity
    return hits / sum(len(blocks) for blocks in prompts)


@pytest.mark.parametrize("size", range(len(CAPACITIES)), ids=[f"{tokens:.0e}" for tokens in CAPACITIES])
def test_hit_rate_is_the_published_one(trace, size):
    name, prompts = trace
    rate = hit_rate(prompts, CAPACITIES[size] // BLOCK_TOKENS)
    assert f"{rate:.4f}" == PUBLISHED[name].split()[size]
