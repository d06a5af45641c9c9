"""How many steps of growing length reach an instant, against counting them."""

from hypothesis import given
from hypothesis import strategies as st

from sim.serving.steps import length_ps, steps_until


def counted(elapsed_ps, first_ps, growth_ps):
    """Take one step after the other."""
    steps, at_ps = 1, first_ps
    while at_ps < elapsed_ps:
        at_ps += first_ps + steps * growth_ps
        steps += 1
    return steps


@given(st.integers(0, 5000), st.integers(1, 60), st.integers(0, 20))
def test_equals_counting(elapsed_ps, first_ps, growth_ps):
    assert steps_until(elapsed_ps, first_ps, growth_ps) == counted(elapsed_ps, first_ps, growth_ps)


def test_equals_counting_everywhere_near_the_boundaries():
    for first_ps in range(1, 12):
        for growth_ps in range(8):
            for elapsed_ps in range(160):
                expected = counted(elapsed_ps, first_ps, growth_ps)
                assert steps_until(elapsed_ps, first_ps, growth_ps) == expected


@given(st.integers(1, 10**7), st.integers(1, 10**13), st.integers(0, 10**9), st.sampled_from([-1, 0, 1]))
def test_is_exact_at_boundaries_however_large(steps, first_ps, growth_ps, off):
    """At a boundary it is that boundary, a picosecond later the next one: floats could not tell."""
    boundary_ps = steps * first_ps + growth_ps * (steps * (steps - 1) // 2)
    expected = max(1, steps + (off == 1) - (off == -1 and first_ps + (steps - 1) * growth_ps == 1))
    assert steps_until(boundary_ps + off, first_ps, growth_ps) == expected


def test_steps_that_take_no_time():
    """Whoever arrives while they happen joins after the first."""
    assert steps_until(0, 0, 0) == 1
    assert length_ps(7, 0, 0) == 0


def test_beyond_64_bits():
    first_ps, growth_ps, steps = 3 * 10**16, 7 * 10**15, 10**6
    boundary_ps = steps * first_ps + growth_ps * (steps * (steps - 1) // 2)
    assert 8 * growth_ps * boundary_ps > 2**64
    assert steps_until(boundary_ps, first_ps, growth_ps) == steps
    assert steps_until(boundary_ps + 1, first_ps, growth_ps) == steps + 1


@given(st.integers(0, 60), st.integers(1, 100), st.integers(0, 100))
def test_steps_last_the_sum_of_each(steps, first_ps, growth_ps):
    assert length_ps(steps, first_ps, growth_ps) == sum(first_ps + step * growth_ps for step in range(steps))
