"""The picture of a pool's size draws its table."""

import pytest
from pool_size_parts import PRICE, table

from sim.report.poolsize import PANELS, draw_pool_sizes
from sim.results.poolsize import pool_sizes


@pytest.fixture(scope="module")
def sizes():
    return pool_sizes(table(), PRICE)


def labels(ax):
    return [text.get_text() for text in ax.texts]


def test_what_is_drawn_is_the_table(sizes):
    axes = draw_pool_sizes(sizes, 2.0).axes
    assert len(axes) == 4
    for ax, (name, title, unit, factor) in zip(axes, PANELS, strict=True):
        assert list(ax.lines[0].get_xdata()) == [0, 500, 1000, 2000]
        assert list(ax.lines[0].get_ydata()) == pytest.approx([factor * value for value in sizes.table[name]])
        assert ax.get_title(loc="left") == title
        assert ax.get_ylabel() == unit


def test_knees_and_the_cheapest_are_marked(sizes):
    axes = draw_pool_sizes(sizes, 2.0).axes
    assert [labels(ax)[-1] for ax in axes] == [
        *["knee: 1 000 GB"] * 3,
        "cheapest within the SLO: 1 000 GB",
    ]
    assert labels(axes[1])[0] == "SLO 2.00 s"


def test_without_knee_and_limit_nothing_is_marked():
    straight = {size: (size / 10_000, 3.0, 1.0) for size in (0, 1000, 2000)}
    axes = draw_pool_sizes(pool_sizes(table(straight), PRICE)).axes
    assert [labels(ax) for ax in axes] == [[], [], [], []]
