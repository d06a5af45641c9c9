"""Bisection for the highest value that holds: against a known limit, and on a small scenario."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.studies import write

from sim import api
from sim.base.errors import ConfigError
from sim.whatif import highest as module
from sim.whatif.axes import axis_of_text, points
from sim.whatif.highest import MOST_DOUBLINGS, Search, find_max
from sim.whatif.sweep import How

WITHIN = 0.02
ALONE = next(points([]))


def searched(start, limit, is_whole=False):
    search = Search(Decimal(start), is_whole)
    while not search.is_over(WITHIN):
        search.learn(search.tried <= limit, "ttft p90 < 2 s")
        assert search.steps < 40
    return search


@given(st.floats(1, 1000), st.floats(1, 1000))
def test_it_brackets_the_limit(start, limit):
    search = searched(f"{start:.4g}", limit)
    assert search.holds <= limit < search.breaks
    assert search.breaks - search.holds <= Decimal("0.0201") * search.holds


@given(st.integers(1, 500), st.integers(1, 500))
def test_whole_numbers_come_out_exactly(start, limit):
    search = searched(start, limit, is_whole=True)
    assert search.breaks - search.holds <= max(1, Decimal("0.02") * search.holds)
    assert search.holds <= limit < search.breaks


def test_what_never_breaks_or_never_holds_comes_to_an_end():
    endless = searched(1, float("inf"))
    assert (endless.breaks, endless.holds) == (None, 2**MOST_DOUBLINGS)
    hopeless = searched(1, 0)
    assert hopeless.holds is None
    assert searched(3, 0, is_whole=True).holds is None


@pytest.fixture(name="base")
def base_(tmp_path):
    return api.load(write(tmp_path)).replace({"workload.limit": 200, "slo": ["ttft p90 < 200 ms"]})


@pytest.mark.slow
def test_on_a_scenario_what_holds_meets_and_what_breaks_does_not(base, tmp_path):
    found = find_max(base, "workload.arrivals.rate", ALONE, 2, How(1, tmp_path / "out"))
    assert found.unit == "req/s"
    assert not found.is_open
    for seed, search in zip(found.seeds, found.searches, strict=True):
        for rate, is_met in ((search.holds, True), (search.breaks, False)):
            played = api.run(base.replace({"workload.arrivals.rate": f"{rate:f} req/s", "run.seed": seed}))
            assert played.is_slo_met is is_met
        assert search.why == "ttft p90 < 200 ms"
    assert found.mean.low <= min(found.found) <= max(found.found) <= found.mean.high


def test_what_was_played_is_not_played_again(base, tmp_path, monkeypatch):
    how = How(1, tmp_path / "out")
    first = find_max(base, "workload.arrivals.rate", ALONE, 1, how)
    monkeypatch.setattr("sim.whatif.trials.Trial.play", lambda _: pytest.fail("played again"))
    assert find_max(base, "workload.arrivals.rate", ALONE, 1, how).found == first.found


def test_a_point_that_fails_says_why(base):
    (point,) = points([axis_of_text("pools.prefill.tp=5")])
    found = find_max(base, "workload.arrivals.rate", point, 2, How(1))
    assert "5" in found.problem
    assert found.mean is None


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        ({"slo": []}, "workload.arrivals.rate", "has no SLO"),
        ({}, "workload.rate", "no number to begin with, but nothing"),
        ({}, "router.policy", "no number to begin with, but prefix_aware"),
    ],
)
def test_mistakes(base, change, key, said):
    with pytest.raises(ConfigError, match=said):
        find_max(base.replace(change), key, ALONE, 1, How(1))


def test_one_seed_has_no_interval(base, monkeypatch):
    monkeypatch.setattr(
        module,
        "played",
        lambda trials, how: [
            {"status": "ok", "slo_met": trial.scenario.workload.arrivals.rate <= 70, "slo_broken": "x"}
            for trial in trials
        ],
    )
    found = find_max(base, "workload.arrivals.rate", ALONE, 1, How(1))
    assert found.mean.mean == pytest.approx(69, abs=1.1)
    assert found.mean.half != found.mean.half
