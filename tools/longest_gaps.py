"""How long each request's longest gaps between tokens are, from the segments of a run.

A run keeps steps, not tokens: a sequence gets one at the end of each step of its replica from its second
token on. Where that does not give as many tokens as it has (it was put aside in between), there is no answer.
Units: picoseconds in, seconds out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sim.tables.recorder import MemorySink

LONGEST_SHARE = 0.1
PS_PER_S = 1e12

Integers = npt.NDArray[np.int64]


def longest_gaps_s(sink: MemorySink) -> npt.NDArray[np.float64]:
    """For each request, by its id, the mean of the longest tenth of its gaps, or of the one; else NaN."""
    segments, requests = sink.segment_table(), sink.request_table()
    ends = {
        int(replica): step_ends_ps(
            {name: column[segments["replica"] == replica] for name, column in segments.items()}
        )
        for replica in np.unique(segments["replica"])
    }
    found = np.full(len(requests["request_id"]), np.nan)
    names = (
        "request_id",
        "decode_replica",
        "output_tokens",
        "first_token_ps",
        "second_token_ps",
        "finished_ps",
    )
    for request, replica, tokens, first_ps, second_ps, last_ps in zip(
        *(requests[name].tolist() for name in names), strict=True
    ):
        if replica in ends and second_ps >= 0 and last_ps >= 0:
            begin, end = np.searchsorted(ends[replica], (second_ps, last_ps + 1))
            later = ends[replica][begin:end]
            if len(later) == tokens - 1:
                found[request] = longest(np.diff(later, prepend=first_ps)) / PS_PER_S
    return found


def step_ends_ps(segments: dict[str, Integers]) -> Integers:
    """The instants at which steps of a replica end, in order."""
    steps = segments["steps"]
    number = np.arange(steps.sum()) - np.repeat(np.cumsum(steps) - steps, steps)
    names = ("started_ps", "first_step_ps", "step_growth_ps")
    began, first, growth = (np.repeat(segments[name], steps) for name in names)
    return np.unique(began + (number + 1) * first + growth * ((number + 1) * number // 2))


def longest(gaps: Integers) -> float:
    """The mean of the longest tenth."""
    return float(np.sort(gaps)[-max(1, round(LONGEST_SHARE * len(gaps))) :].mean())
