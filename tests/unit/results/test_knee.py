"""Where curves bend, against a naive twin and by hand."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.results.knee import LEAST_BEND, knee


def furthest(x, y):
    """The position furthest on the early side of the chord, by geometry: the signed area of a triangle."""
    rises = 1 if y[-1] > y[0] else -1
    areas = [
        rises * ((x[-1] - x[0]) * (b - y[0]) - (y[-1] - y[0]) * (a - x[0])) for a, b in zip(x, y, strict=True)
    ]
    return areas.index(max(areas))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_corner_is_the_knee_whatever_the_units(sign):
    x, y = [0, 1, 2, 3, 4], [sign * value for value in (0, 4, 8, 8.1, 8.2)]
    assert knee(x, y) == 2
    assert knee([1000 * value for value in x], [value / 7 + 3 for value in y]) == 2


def test_what_is_straight_or_bends_late_has_no_knee():
    assert knee([0, 1, 2, 3], [0, 1, 2, 3]) is None
    assert knee([0, 1, 2, 3], [0, 0, 0, 3]) is None
    assert knee([0, 1, 2], [5, 5, 5]) is None
    assert knee([0, 1], [0, 1]) is None


def test_the_bend_must_be_as_large_as_said():
    assert knee([0, 50, 100], [0, 50 + 101 * LEAST_BEND, 100]) == 1
    assert knee([0, 50, 100], [0, 49 + 100 * LEAST_BEND, 100]) is None


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=12, unique=True), st.data())
def test_it_is_the_point_furthest_from_the_chord(places, data):
    x = sorted(places)
    y = data.draw(st.lists(st.integers(-50, 50), min_size=len(x), max_size=len(x)))
    found = knee(x, y)
    if found is not None:
        best = furthest(x, y)
        assert found == best or x[found] == x[best] or _area(x, y, found) == pytest.approx(_area(x, y, best))
    assert all(low < high for low, high in pairwise(x))


def _area(x, y, i):
    return abs((x[-1] - x[0]) * (y[i] - y[0]) - (y[-1] - y[0]) * (x[i] - x[0]))
