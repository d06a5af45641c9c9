"""The pool with one node on the real Mooncake traces, at eight sizes: each prompt finds what plain LRU finds.

The twin is an ordered dictionary: the leading run of cached blocks are hits, then the prompt's blocks go in,
its head as the most recent. First the pool alone is held to it, prompt by prompt; then whole simulations,
with prompts so far apart that each is written before the next one comes. An engine does not cache a prompt
that is larger than the cache, so its sizes start above the longest prompt.
"""

import gzip
import json
from collections import OrderedDict
from pathlib import Path

import pytest

from sim import api
from sim.kvpool.pool import DRAM, KvPool, Place
from sim.workload.errors import TraceError
from sim.workload.library import find_trace

pytestmark = pytest.mark.trace

SCENARIO = Path(__file__).parents[2] / "scenarios" / "mooncake-fast25.yaml"
BLOCK_TOKENS = 512
UNLIMITED = 1 << 40
CAPACITIES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 50_000_000, UNLIMITED)
BLOCK_HITS = {
    "mooncake-conversation": (12_084, 12_205, 15_370, 39_258, 82_273, 103_511, 104_870, 105_710),
    "mooncake-synthetic": (2_050, 6_586, 17_351, 37_703, 69_059, 77_953, 77_953, 77_953),
}
PUBLISHED = {
    "mooncake-conversation": "0.0419 0.0423 0.0533 0.1361 0.2852 0.3588 0.3635 0.3664",
    "mooncake-synthetic": "0.0168 0.0540 0.1424 0.3094 0.5666 0.6396 0.6396 0.6396",
}
PLAYED = [
    ("mooncake-conversation", 3_000_000),
    ("mooncake-synthetic", 300_000),
    ("mooncake-synthetic", 3_000_000),
    ("mooncake-synthetic", 10_000_000),
]
APART_S = 100


class Trace:
    """Its name, the rows as written, and the block ids of its prompts."""

    def __init__(self, name):
        self.name = name
        with gzip.open(find_trace(name), "rt") as lines:
            self.rows = [json.loads(line) for line in lines]
        self.prompts = [tuple(row["hash_ids"]) for row in self.rows]


@pytest.fixture(scope="module", params=BLOCK_HITS)
def trace(request):
    try:
        return Trace(request.param)
    except TraceError as absent:
        pytest.skip(f"NOT TESTED: {absent}")


def found_by_lru(prompts, capacity):
    """How many leading blocks of each prompt a plain LRU finds."""
    cache, found = OrderedDict(), []
    for blocks in prompts:
        hits = next((depth for depth, block in enumerate(blocks) if block not in cache), len(blocks))
        found.append(hits)
        for block in reversed(blocks):
            cache[block] = True
            cache.move_to_end(block)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return found


def found_by_pool(prompts, capacity):
    """The same by the pool; of a prompt larger than it only the head is written."""
    pool = KvPool([{0: capacity}, {}])
    cache = pool.cache(Place(DRAM, 0))
    found = []
    for blocks in prompts:
        found.append(pool.here(pool.match(blocks), 0)[0])
        cache.keep(blocks[:capacity])
        assert cache.cached <= capacity
    return found


@pytest.mark.parametrize("size", range(len(CAPACITIES)), ids=[f"{tokens:.0e}" for tokens in CAPACITIES])
def test_the_pool_finds_for_each_prompt_what_lru_finds(trace, size):
    capacity = CAPACITIES[size] // BLOCK_TOKENS
    found = found_by_pool(trace.prompts, capacity)
    assert found == found_by_lru(trace.prompts, capacity)
    assert sum(found) == BLOCK_HITS[trace.name][size]
    assert f"{sum(found) / sum(map(len, trace.prompts)):.4f}" == PUBLISHED[trace.name].split()[size]


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "tokens"), PLAYED, indirect=["trace"])
def test_a_simulation_finds_for_each_prompt_what_lru_finds(trace, tokens, tmp_path):
    capacity = tokens // BLOCK_TOKENS
    path = tmp_path / "apart.jsonl"
    rows = (row | {"timestamp": 1000 * APART_S * number} for number, row in enumerate(trace.rows))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sets = [
        *(f"workload.{key}=null" for key in ("generator", "rate")),
        f"workload.trace={path}",
        *("run.duration=null", "run.sample_every=1 h", "slo=null"),
        *("pools.prefill.replicas=1", "router.policy=round_robin"),
        *("kv_pool.policy=local", "kv_pool.fetch=always", f"kv_pool.blocks={capacity}"),
    ]
    requests = api.run(api.load(SCENARIO, sets)).requests
    last_tokens = [row["input_length"] - 1 for row in trace.rows]
    expected = [
        min(hits * BLOCK_TOKENS, most)
        for hits, most in zip(found_by_lru(trace.prompts, capacity), last_tokens, strict=True)
    ]
    assert requests["dram_tokens"].tolist() == expected
    assert (requests["phase_queue_s"] == 0).all()
