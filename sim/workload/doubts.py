"""Doubts about the instants of a trace: a wrong unit, Unix time, arrivals given in coarse ticks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from sim.base.errors import Advice
from sim.base.units import show
from sim.workload.rows import PS_PER_MS, PS_PER_S

FEW_ROWS = 20
DENSEST_PER_S = 1_000
SPARSEST_PER_S = 0.01
LATEST_START_PS = 30 * 86_400 * PS_PER_S
FINEST_TICK_PS = 50 * PS_PER_MS
TICK_JITTER = 0.01


def doubts_on_times(times_ps: Sequence[int], tick_ps: int | None = None) -> list[Advice]:
    """Judge the sorted instants of the first rows; `tick_ps` is the tick that the scenario declares."""
    if len(times_ps) < FEW_ROWS:
        return []
    doubts = [doubt for doubt in (_start(times_ps[0]), _rate(times_ps)) if doubt is not None]
    seen_ps = tick_of(times_ps)
    if seen_ps is not None and tick_ps is None:
        each = len(times_ps) / len(set(times_ps))
        tick = show(seen_ps, "time")
        doubts.append(
            Advice(
                f"arrivals come in ticks of {tick}, {each:.3g} requests at each",
                f"set workload.tick: {tick} to spread them within the ticks",
            )
        )
    return doubts


def tick_of(times_ps: Sequence[int]) -> int | None:
    """Return the tick in which sorted instants are given, or None where there is no coarse tick.

    There is one if several arrivals share an instant and nearly all gaps between different instants
    are whole multiples of a smallest gap, give or take one percent.
    """
    different = sorted(set(times_ps))
    if len(different) < FEW_ROWS or len(different) > 0.9 * len(times_ps):
        return None
    gaps = sorted(later - earlier for earlier, later in pairwise(different))
    small = gaps[len(gaps) // 100]
    tick = int(median(gap for gap in gaps if gap <= small * (1 + TICK_JITTER)))
    whole = sum(
        abs(gap / tick - round(gap / tick)) <= TICK_JITTER * max(1, round(gap / tick)) for gap in gaps
    )
    if tick < FINEST_TICK_PS or whole < 0.98 * len(gaps):
        return None
    return _round_tick(tick)


def _round_tick(tick_ps: int) -> int:
    """Return the roundest number of milliseconds within the jitter."""
    for unit_ps in (PS_PER_S, PS_PER_S // 10, PS_PER_MS * 10, PS_PER_MS):
        near = round(tick_ps / unit_ps) * unit_ps
        if near and abs(near - tick_ps) <= TICK_JITTER * tick_ps:
            return near
    return tick_ps


def _start(first_ps: int) -> Advice | None:
    if first_ps < LATEST_START_PS:
        return None
    days = first_ps / PS_PER_S / 86_400
    return Advice(
        f"the first request arrives {days:,.0f} days after the start",
        "if the timestamps are Unix time, subtract the first one from all",
    )


def _rate(times_ps: Sequence[int]) -> Advice | None:
    span_s = (times_ps[-1] - times_ps[0]) / PS_PER_S
    if span_s == 0:
        return Advice(
            f"the first {len(times_ps)} requests arrive at one instant", "check the column of arrival times"
        )
    rate = (len(times_ps) - 1) / span_s
    if rate > DENSEST_PER_S:
        return Advice(
            f"{rate:,.0f} requests/s: the timestamps look like a coarser unit than the format's",
            "if they are seconds and should be milliseconds, multiply them by 1000",
        )
    if rate < SPARSEST_PER_S:
        return Advice(
            f"one request in {1 / rate:,.0f} s: the timestamps look like a finer unit than the format's",
            "if they are milliseconds and should be seconds, divide them by 1000",
        )
    return None
