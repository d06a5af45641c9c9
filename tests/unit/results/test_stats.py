"""Weighted quantiles are numpy's on the expanded list, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim.results.stats import distribution, fraction_of, samples_beyond

NAMES = ("p1", "p37.5", "p50", "p90", "p99", "p99.9")


@pytest.mark.parametrize("seed", range(40))
def test_quantiles_equal_numpy_on_the_expanded_list(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice(rng.random(12), rng.integers(1, 40))
    weights = rng.integers(0, 9, len(values))
    weights[0] += 1
    expanded = np.repeat(values, weights)
    found = distribution(values, weights)
    assert found.count == len(expanded)
    for name in NAMES:
        assert found.statistic(name) == np.quantile(expanded, fraction_of(name)), name
    assert found.statistic("max") == expanded.max()
    assert found.statistic("mean") == pytest.approx(expanded.mean(), rel=1e-12)


def test_without_weights_each_value_counts_once_and_nan_not_at_all():
    found = distribution(np.array([3.0, np.nan, 1.0, 2.0]))
    assert (found.count, found.statistic("p50"), found.statistic("mean")) == (3, 2.0, 2.0)


def test_of_nothing_there_is_nothing():
    found = distribution(np.array([np.nan]))
    assert found.count == 0
    assert all(math.isnan(found.statistic(name)) for name in ("mean", "p50", "max"))
    assert math.isnan(found.share_up_to(1.0))


@pytest.mark.parametrize("missing", [1, 3, 10])
def test_missing_values_count_as_infinite(missing):
    values = np.arange(1.0, 11.0)
    expanded = np.concatenate([values, np.full(missing, np.inf)])
    found = distribution(values)
    for name in NAMES:
        position = (len(expanded) - 1) * fraction_of(name)
        low, high = expanded[math.floor(position)], expanded[math.ceil(position)]
        if math.isinf(high):
            assert math.isinf(found.statistic(name, missing))
        else:
            assert low <= found.statistic(name, missing) <= high
    assert math.isinf(found.statistic("mean", missing))
    assert math.isinf(found.statistic("max", missing))


def test_only_missing_values_are_all_infinite():
    assert math.isinf(distribution(np.array([])).statistic("p50", missing=2))


def test_the_share_up_to_a_limit_includes_the_limit():
    found = distribution(np.array([1.0, 2.0, 3.0]), np.array([1, 2, 1]))
    assert [found.share_up_to(limit) for limit in (0.5, 1.0, 2.0, 9.0)] == [0.0, 0.25, 0.75, 1.0]


@pytest.mark.parametrize(
    ("count", "name", "is_weak"),
    [
        (100, "p90", False),
        (99, "p90", True),
        (10_000, "p99.9", False),
        (9_999, "p99.9", True),
        (1, "max", False),
    ],
)
def test_a_quantile_is_weak_with_fewer_than_ten_samples_beyond(count, name, is_weak):
    assert distribution(np.ones(count)).is_weak(name) is is_weak


def test_fractions_are_exact():
    assert fraction_of("p99.9") == 0.999
    assert samples_beyond(10_000, "p99.9") == 10
