"""Readers and generator against the real public traces, where they are at hand.

They are looked for in $SIM_TRACES and in the download cache; without a file its tests are skipped.
"""

import numpy as np
import pytest
from workload_parts import S, lru_hit_rate, requests_of, seen_before

from sim.workload.errors import TraceError
from sim.workload.info import trace_info
from sim.workload.library import find_trace

pytestmark = pytest.mark.trace

CAPACITIES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 50_000_000, None)
LRU = {
    "mooncake-conversation": (0.0419, 0.0423, 0.0533, 0.1361, 0.2852, 0.3588, 0.3635, 0.3664),
    "mooncake-synthetic": (0.0168, 0.0540, 0.1424, 0.3094, 0.5666, 0.6396, 0.6396, 0.6396),
}
FIGURES = {  # rows, span s, requests/s of the busiest minute, CV of gaps
    "mooncake-conversation": (12_031, 3537.0, 4.12, 3.03),
    "mooncake-synthetic": (3_993, 1022.0, 4.55, 1.01),
    "azure-code-2023": (8_819, 3435.9, 10.53, 13.15),
    "azure-conv-2023": (19_366, 3501.7, 8.45, 1.09),
}
LENGTHS = {  # input tokens, then output tokens: mean, p50, p90, p99, max
    "mooncake-conversation": ((12_035, 6_909, 27_367, 85_400, 126_195), (343, 350, 597, 1_119, 2_000)),
    "mooncake-synthetic": ((15_325, 11_587, 38_611, 66_456, 191_378), (149, 69, 389, 768, 893)),
    "azure-code-2023": ((2_048, 1_469, 5_188, 7_436, 7_437), (28, 13, 55, 251, 1_899)),
    "azure-conv-2023": ((1_155, 1_020, 2_735, 4_142, 14_050), (211, 129, 424, 601, 1_000)),
}
REUSE = {  # blocks, distinct blocks, share seen before, share of tokens in a known prefix
    "mooncake-conversation": (288_500, 182_790, 0.366, 0.374),
    "mooncake-synthetic": (121_877, 43_924, 0.640, 0.651),
}
SEEDS = range(1, 6)
HOUR_PS = 3537 * S


def present(name):
    try:
        find_trace(name)
    except TraceError as absent:
        pytest.skip(f"NOT TESTED: {absent}")
    return name


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_the_published_ones(name):
    rows, span_s, peak, cv = FIGURES[name]
    given, made = LENGTHS[name]
    found = trace_info(present(name))
    assert found.is_verified
    assert (found.rows, found.skipped_rows, found.extra_keys) == (rows, 0, ())
    assert found.span_s == pytest.approx(span_s, abs=0.06)
    assert found.peak_minute_rate_per_s == pytest.approx(peak, abs=0.006)
    assert found.gap_cv == pytest.approx(cv, abs=0.006)
    for stats, published in ((found.input_tokens, given), (found.output_tokens, made)):
        assert (stats.mean, stats.p50, stats.p90, stats.p99, stats.max) == pytest.approx(published, abs=0.6)
    if name in REUSE:
        blocks, distinct, seen, hit = REUSE[name]
        assert (found.reuse.blocks, found.reuse.distinct_blocks) == (blocks, distinct)
        assert found.reuse.seen_before_fraction == pytest.approx(seen, abs=6e-4)
        assert found.reuse.token_hit_fraction == pytest.approx(hit, abs=6e-4)


def test_the_ticks_of_the_conversation_are_seen():
    found = trace_info(present("mooncake-conversation"))
    assert found.tick_ps == 3 * S
    assert [doubt.remedy for doubt in found.advice] == [
        "set workload.tick: 3 s to spread them within the ticks"
    ]


def test_spread_ticks_look_like_poisson():
    requests = requests_of(trace=present("mooncake-conversation"), tick="3 s")
    gaps = np.diff([request.arrived_ps for request in requests])
    assert len(requests) == 12_031
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("name", LRU)
def test_an_lru_replay_gives_the_published_hit_rates(name):
    prompts = [request.blocks for request in requests_of(trace=present(name))]
    assert [round(lru_hit_rate(prompts, capacity), 4) for capacity in CAPACITIES] == list(LRU[name])


def test_copies_reuse_as_the_trace_does():
    name = present("mooncake-conversation")
    copies = requests_of(trace=name, tick="3 s", scale={"copies": 3})
    assert len(copies) == 3 * 12_031
    assert seen_before([request.blocks for request in copies]) == pytest.approx(0.3664, abs=2e-4)


# The generator over the hour of the trace, at its rate, averaged over seeds.


@pytest.fixture(scope="module")
def real():
    return requests_of(trace=present("mooncake-conversation"))


@pytest.fixture(scope="module")
def hours(real):
    return [requests_of(seed, HOUR_PS, generator="mooncake-conversation") for seed in SEEDS]


@pytest.mark.parametrize("part", ["input_tokens", "output_tokens"])
def test_generator_lengths(part, real, hours):
    true = np.sort([getattr(request, part) for request in real])
    for hour in hours:
        made = np.sort([getattr(request, part) for request in hour])
        both = np.concatenate([true, made])
        ranks = [np.searchsorted(each, both, side="right") / len(each) for each in (true, made)]
        assert np.abs(ranks[0] - ranks[1]).max() <= 0.05, "KS distance"


def test_generator_share_of_blocks_seen_before(real, hours):
    true = seen_before([request.blocks for request in real])
    shares = [seen_before([request.blocks for request in hour]) for hour in hours]
    assert round(true, 3) == 0.366
    assert np.std(shares, ddof=1) / np.sqrt(len(shares)) < 0.01, "test too weak"
    assert abs(np.mean(shares) - true) <= 0.02


@pytest.mark.parametrize("capacity_tokens", CAPACITIES)
def test_generator_lru_hit_rate(capacity_tokens, real, hours):
    true = lru_hit_rate([request.blocks for request in real], capacity_tokens)
    rates = [lru_hit_rate([request.blocks for request in hour], capacity_tokens) for hour in hours]
    assert abs(np.mean(rates) - true) <= 0.03
