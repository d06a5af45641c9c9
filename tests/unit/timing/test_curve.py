"""Curves add, scale and never fall."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.timing.curve import Curve

# Nothing, or at least a millionth of a picosecond (a token): smaller numbers only probe the ends of floats.
lines = st.tuples(st.just(0.0) | st.floats(1e-6, 1e12), st.just(0.0) | st.floats(1e-6, 1e9))
curves = st.lists(lines, min_size=1, max_size=4).map(lambda given: Curve.roof(*given))
places = st.floats(0, 1e7)


def test_a_roof_is_the_higher_of_two_lines():
    roof = Curve.roof((100.0, 1.0), (0.0, 3.0))  # they cross at 50
    assert [roof(x) for x in (0, 10, 50, 60, 1000)] == [100, 110, 150, 180, 3000]


def test_parallel_lines():
    assert Curve.roof((1.0, 2.0), (5.0, 2.0))(10) == 25


def test_a_curve_through_points_is_flat_before_and_straight_on_after():
    curve = Curve.through([(8, 5.0), (16, 6.0), (32, 10.0)])
    assert [curve(x) for x in (0, 4, 8, 12, 16, 24, 32, 64)] == [5, 5, 5, 5.5, 6, 8, 10, 18]


def test_scaling():
    curve = Curve.through([(8, 5.0), (16, 6.0)])
    assert curve.times(3)(16) == 18
    assert curve.of_scaled(4)(4) == curve(16)


def test_a_sum_bends_where_its_parts_do():
    total = Curve.roof((100.0, 0.0), (0.0, 1.0)) + Curve.roof((300.0, 0.0), (0.0, 1.0))
    assert total.starts == [0, 100, 300]
    assert [total(x) for x in (0, 100, 200, 300, 400)] == [400, 400, 500, 600, 800]


@given(curves, curves, places)
def test_a_sum_is_the_sum(first, second, x):
    assert (first + second)(x) == pytest.approx(first(x) + second(x), rel=1e-9, abs=1e-6)


@given(curves, curves, places, places)
def test_more_is_never_less(first, second, x, y):
    total = first + second
    assert total(min(x, y)) <= total(max(x, y))


def test_the_higher_of_two_curves_bends_where_they_cross():
    flat_then_steep, even = Curve.through([(10, 100.0), (20, 200.0)]), Curve.roof((0.0, 8.0))
    higher = flat_then_steep.highest(even)
    assert higher.starts == pytest.approx([0, 10, 20])
    assert [higher(x) for x in (0, 5, 10, 20, 30)] == [100, 100, 100, 200, 300]
    late = Curve.roof((0.0, 12.0)).highest(flat_then_steep)
    assert late.starts == pytest.approx([0, 100 / 12, 10, 20])
    assert [late(x) for x in (5, 9, 40)] == pytest.approx([100, 108, 480])


@given(curves, curves, places)
def test_the_higher_of_two_curves_is_the_higher_one(first, second, x):
    assert first.highest(second)(x) == pytest.approx(max(first(x), second(x)), rel=1e-9)
