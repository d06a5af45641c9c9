"""How often a case is timed, and what is kept of it."""

import numpy as np
from calibrate_parts import FakeClock
from hypothesis import given
from hypothesis import strategies as st

from sim.calibrate.samples import Policy, Summary, repeated


def calls(duration_s, policy):
    """How often something of a given length is called, and how many of its times are kept."""
    clock, made = FakeClock(), []

    def once():
        clock.now_s += duration_s
        made.append(clock.now_s)
        return duration_s

    return len(repeated(once, clock, policy)), len(made)


POLICY = Policy(warmups=2, warm_s=0.1, least=5, most=30, share_s=0.2)


def test_what_is_short_is_timed_as_often_as_allowed_after_warming_up():
    kept, made = calls(0.001, POLICY)
    assert kept == 30
    assert abs(made - kept - 100) <= 1


def test_what_is_longer_is_timed_for_its_share():
    kept, made = calls(0.0126, POLICY)
    assert kept == 16  # 15 take less than 0.2 s
    assert made - kept == 8


def test_what_is_very_long_is_timed_a_few_times_all_the_same():
    assert calls(3.0, POLICY) == (5, 7)


@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=40))
def test_median_and_quartiles_are_those_of_numpy(samples_s):
    summary = Summary.of(samples_s)
    low, middle, high = np.percentile(np.array(samples_s) * 1e6, [25, 50, 75])
    assert abs(summary.median_us - middle) <= 1e-3
    assert abs(summary.iqr_us - (high - low)) <= 2e-3
    assert summary.repetitions == len(samples_s)
