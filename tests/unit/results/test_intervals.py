"""Intervals from replications, against scipy's own tests and against what they promise."""

import math

import numpy as np
import pytest
from scipy import stats

from sim.results.intervals import interval, paired


def test_it_is_students_interval():
    values = [3.1, 2.7, 3.6, 3.3, 2.9]
    found = interval(values)
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


def test_a_paired_interval_leaves_zero_out_where_the_paired_test_does():
    before, after = [10.0, 12.0, 9.0, 14.0], [10.4, 12.5, 9.3, 14.6]
    assert stats.ttest_rel(after, before).pvalue < 0.05
    assert paired(before, after).is_apart_from_zero
    assert not (interval(after).low > interval(before).high)  # which unpaired ones would not show
    noisy = [10.4, 11.5, 9.3, 13.6]
    assert stats.ttest_rel(noisy, before).pvalue > 0.05
    assert not paired(before, noisy).is_apart_from_zero


def test_one_replication_says_nothing_about_uncertainty():
    found = interval([2.0])
    assert found.mean == 2.0
    assert math.isnan(found.half)
    assert not found.is_apart_from_zero
    assert math.isnan(interval([]).mean)


def test_it_covers_the_truth_as_often_as_it_says():
    """2,000 samples of five: 95 %, give or take four standard errors of 0.5 %."""
    random = np.random.default_rng(3)
    hits = sum(
        abs(interval(list(values)).mean - 7) <= interval(list(values)).half
        for values in random.normal(7, 2, (2000, 5))
    )
    assert 0.93 < hits / 2000 < 0.97
