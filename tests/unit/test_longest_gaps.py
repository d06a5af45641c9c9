"""The longest gaps of each request, which a tool takes from segments, against all tokens one by one."""

import sys
from pathlib import Path

import numpy as np
import pytest
from models.rebuild import rows, token_times
from models.smallpool import simulation

from sim.api import Silent

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from longest_gaps import longest, longest_gaps_s, step_ends_ps


def test_steps_that_grow_end_where_they_do_by_hand():
    steps = {"started_ps": [0, 100], "steps": [3, 2], "first_step_ps": [10, 5], "step_growth_ps": [2, 0]}
    ends = step_ends_ps({name: np.array(column) for name, column in steps.items()})
    assert ends.tolist() == [10, 22, 36, 105, 110]


def test_a_tenth_of_the_gaps_counts_and_one_at_least():
    assert longest(np.arange(1, 31)) == 29
    assert longest(np.array([4, 7, 2])) == 7


def test_gaps_are_those_of_the_listed_tokens(tmp_path):
    ready = simulation(tmp_path, "workload.limit=60", "run.duration=null", "router.reject=never")
    ready.play(Silent())
    sink = ready.serving.log.sink
    found = longest_gaps_s(sink)
    tokens = token_times(rows(sink.request_table()), rows(sink.segment_table()))
    assert len(tokens) == len(found) == 60
    for request, times in tokens.items():
        gaps = sorted(np.diff(times))
        count = max(1, round(len(gaps) / 10))
        expected = np.mean(gaps[-count:]) / 1e12 if gaps else np.nan
        assert found[request] == pytest.approx(expected, rel=1e-9, nan_ok=True)
