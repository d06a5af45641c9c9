"""Axes as the command line says them."""

import pytest

from sim.base.errors import ConfigError
from sim.whatif.axes import axis_of_text, axis_of_values, points

STEPS = {
    "workload.rate=20..100:20 req/s": ("20 req/s", "40 req/s", "60 req/s", "80 req/s", "100 req/s"),
    "kv_pool.dram=0..1:0.5 TB": ("0 TB", "0.5 TB", "1 TB"),
    "pools.prefill.replicas=1..6:2": ("1", "3", "5"),
    "run.seed=1..1e2:33": ("1", "34", "67", "100"),
}
LISTS = {
    "router.policy=least_loaded,prefix_aware": ("least_loaded", "prefix_aware"),
    "kv_pool={policy: none, hbm: false},{policy: local}": ("{policy: none, hbm: false}", "{policy: local}"),
    "name='a,b',c": ("'a,b'", "c"),
    "slo=[ttft p90 < 1 s, tpot p90 < 9 ms],null": ("[ttft p90 < 1 s, tpot p90 < 9 ms]", "null"),
}
MISTAKES = {
    "rate": "is not KEY=VALUES",
    "a..b=1": "is not KEY=VALUES",
    "rate=": "has a value with nothing in it",
    "rate=1,,2": "has a value with nothing in it",
    "rate=9..1:1": "has a range that leads nowhere",
    "rate=1..9:0": "has a range that leads nowhere",
    "rate=0..1000000:1": "has 1000001 values",
}


@pytest.mark.parametrize("text", STEPS | LISTS)
def test_values(text):
    axis = axis_of_text(text)
    assert axis.labels == (STEPS | LISTS)[text]
    assert axis.key == text.partition("=")[0]
    assert [override.name for override in axis.overrides] == [
        f"--over {axis.key}={label}" for label in axis.labels
    ]


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_say_what_is_wrong_and_how_it_is_written(text):
    with pytest.raises(ConfigError) as raised:
        axis_of_text(text)
    assert str(raised.value).startswith(f"--over {text}: {MISTAKES[text]}\n  hint: write it as in --over")


def test_points_are_all_combinations_the_last_axis_turning_fastest():
    axes = [axis_of_text("a=1,2"), axis_of_values("b", [True, 0.5])]
    assert [dict(point.labels) for point in points(axes)] == [
        {"a": "1", "b": "True"},
        {"a": "1", "b": "0.5"},
        {"a": "2", "b": "True"},
        {"a": "2", "b": "0.5"},
    ]
    assert [len(point.overrides) for point in points(axes)] == [2, 2, 2, 2]


def test_without_axes_there_is_one_point():
    assert [dict(point.labels) for point in points([])] == [{}]


def test_the_seed_is_no_axis():
    with pytest.raises(ConfigError, match="the seed is no axis"):
        list(points([axis_of_text("run.seed=1,2")]))
