"""The mooncake-conversation generator against published figures of the trace, without the trace.

The figures are those of the conversation trace of Mooncake (FAST 2025 release): percentiles of lengths,
share of blocks seen before in its hour, and block hit rates of one LRU cache. test_real_traces.py compares
with the file.
"""

import numpy as np
import pytest
from workload_parts import S, lru_hit_rate, requests_of, seen_before

HOUR_PS = 3537 * S
SEEDS = range(1, 5)
LRU = {
    100_000: 0.0419,
    300_000: 0.0423,
    1_000_000: 0.0533,
    3_000_000: 0.1361,
    10_000_000: 0.2852,
    30_000_000: 0.3588,
    50_000_000: 0.3635,
    None: 0.3664,
}
INPUT = {50: 6_909, 90: 27_367, 99: 85_400}
OUTPUT = {50: 350, 90: 597, 99: 1_119}


@pytest.fixture(scope="module")
def hours():
    return [requests_of(seed, HOUR_PS, generator="mooncake-conversation") for seed in SEEDS]


def prompts(requests):
    return [request.blocks for request in requests]


def test_requests_come_in_order_with_the_blocks_of_their_length(hours):
    for requests in hours:
        assert [request.id for request in requests] == list(range(len(requests)))
        times = [request.arrived_ps for request in requests]
        assert times == sorted(times)
        assert all(len(request.blocks) == -(-request.input_tokens // 512) for request in requests)
        assert all(891 <= request.input_tokens <= 126_195 for request in requests)
        assert all(1 <= request.output_tokens <= 2_000 for request in requests)


def test_the_rate_is_native_and_steady(hours):
    thirds = np.array(
        [
            np.histogram([r.arrived_ps for r in hour], [0, HOUR_PS // 3, 2 * HOUR_PS // 3, HOUR_PS])[0]
            for hour in hours
        ]
    )
    per_s = thirds / (3537 / 3)
    error = per_s.mean(axis=1).std(ddof=1) / np.sqrt(len(hours))
    assert error / 3.40 < 0.02, "test too weak"
    assert abs(per_s.mean() - 3.40) < 0.1
    assert np.all(np.abs(per_s.mean(axis=0) - 3.40) < 0.2)


def test_blocks_are_chained(hours):
    """An id always stands at the same place behind the same id."""
    before = {}
    for blocks in prompts(hours[0]):
        for place, block in enumerate(blocks):
            behind = (place, blocks[place - 1] if place else None)
            assert before.setdefault(block, behind) == behind
        assert blocks[0] == 0
        assert len(set(blocks)) == len(blocks)


@pytest.mark.parametrize(("part", "published"), [("input_tokens", INPUT), ("output_tokens", OUTPUT)])
def test_lengths_have_the_published_percentiles(part, published, hours):
    lengths = np.array([getattr(request, part) for hour in hours for request in hour])
    for percent, tokens in published.items():
        below = (lengths <= tokens).mean() * 100
        assert abs(below - percent) < 3, f"{below:.1f} % are up to {tokens}"


def test_the_published_share_of_blocks_was_seen_before(hours):
    shares = [seen_before(prompts(hour)) for hour in hours]
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert error < 0.01, "test too weak"
    assert abs(np.mean(shares) - 0.366) < 0.02


@pytest.mark.parametrize("capacity_tokens", LRU)
def test_an_lru_cache_hits_as_published(capacity_tokens, hours):
    rates = [lru_hit_rate(prompts(hour), capacity_tokens) for hour in hours]
    assert abs(np.mean(rates) - LRU[capacity_tokens]) < 0.03


def test_three_times_the_rate_is_three_populations():
    """Three times the users fill three times the cache with the same hit rate; the system block is common."""
    found = requests_of(1, HOUR_PS, generator="mooncake-conversation", rate="10.2 req/s")
    assert abs(len(found) / 3537 - 10.2) < 0.3
    for capacity_tokens in (3_000_000, 10_000_000, None):
        larger = None if capacity_tokens is None else 3 * capacity_tokens
        assert abs(lru_hit_rate(prompts(found), larger) - LRU[capacity_tokens]) < 0.03


def test_a_longer_run_begins_with_the_shorter_one():
    fields = {"generator": "mooncake-conversation", "rate": "100 req/s"}
    long = requests_of(until_ps=60 * S, **fields)
    assert requests_of(until_ps=20 * S, **fields) == [
        request for request in long if request.arrived_ps < 20 * S
    ]
    assert requests_of(limit=99, **fields) == long[:99]
    assert requests_of(limit=99, seed=2, **fields) != long[:99]
