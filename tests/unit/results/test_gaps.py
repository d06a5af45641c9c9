"""Gaps between tokens, counted from segments, are those of the listed tokens."""

from __future__ import annotations

import numpy as np
import pytest
import results_parts as parts

from sim.tables.gaps import TokenGaps
from sim.tables.schema import SEGMENT_COLUMNS


def listed(columns):
    """Every gap of every measured sequence, one by one."""
    gaps = []
    for values in zip(*(columns[name] for name in SEGMENT_COLUMNS), strict=True):
        segment = dict(zip(SEGMENT_COLUMNS, (int(value) for value in values), strict=True))
        for step in range(segment["steps"]):
            have_gap = segment["measured"] - (segment["joined"] if step == 0 else 0)
            gaps += [segment["first_step_ps"] + step * segment["step_growth_ps"]] * have_gap
    return gaps


@pytest.mark.parametrize("seed", range(8))
def test_gaps_equal_those_listed_token_by_token(seed):
    columns, requests = parts.segment_columns(60, seed), parts.request_columns(25, seed)
    requests["measured"][::3] = 0
    requests["second_token_ps"][1] = -1
    gaps = TokenGaps()
    for part in np.array_split(np.arange(60), 4):
        gaps.add_segments({name: column[part] for name, column in columns.items()})
    gaps.add_requests(requests)
    first = (requests["second_token_ps"] - requests["first_token_ps"])[
        (requests["measured"] == 1) & (requests["second_token_ps"] >= 0)
    ]
    lengths, counts = gaps.counted()
    assert sorted(np.repeat(lengths, counts)) == sorted([*listed(columns), *first])


def test_of_nothing_there_are_no_gaps():
    lengths, counts = TokenGaps().counted()
    assert len(lengths) == len(counts) == 0
