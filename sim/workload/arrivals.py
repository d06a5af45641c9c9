"""Arrival processes: when requests come, drawn in chunks of instants in integer picoseconds.

Poisson: independent exponential gaps. Gamma: independent gaps with a stated coefficient of variation.
Diurnal: Poisson at the rate r(t) = rate * (1 + a sin(2 pi t / period)), a = peak_to_mean - 1, made by
time-rescaling: unit-rate arrivals mapped through the inverse of the integral of r. Ramp and bursts in the
same way: a rate that rises linearly over `period` and then stays, and one that is `burst_rate` for the first
`burst` of each `period` and `rate` for the rest of it.
Ignores: that users wait for answers (open loop), and days of the week.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sim.base.errors import UnsupportedError
from sim.workload.rows import PS_PER_S

if TYPE_CHECKING:
    from sim.config.scenario import Arrivals

Instants = npt.NDArray[np.int64]
Knots = npt.NDArray[np.float64]

CHUNK = 8192
LONGEST_PS = 2**62
CYCLE_KNOTS = 2**16


def arrival_chunks(form: Arrivals, random: np.random.Generator) -> Iterator[Instants]:
    """Yield sorted instants in ps without end; the chunks do not depend on who reads them."""
    if form.kind == "diurnal":
        return _diurnal(form, random)
    if form.kind == "bursts":
        return _bursts(form, random)
    if form.kind == "ramp":
        return _ramp(form, random)
    return renewal_chunks(form.rate, form.cv if form.kind == "gamma" else None, random)


def renewal_chunks(rate_per_s: float, cv: float | None, random: np.random.Generator) -> Iterator[Instants]:
    """Yield instants with independent gaps: gamma with that coefficient of variation, or exponential."""
    mean_ps = PS_PER_S / rate_per_s
    last_ps = 0
    while True:
        if cv is None:
            gaps = random.exponential(mean_ps, CHUNK)
        else:
            gaps = random.gamma(cv**-2, mean_ps * cv**2, CHUNK)
        _within_clock(last_ps + float(gaps.sum()))
        chunk = last_ps + np.cumsum(np.rint(gaps).astype(np.int64))
        last_ps = int(chunk[-1])
        yield chunk


def _diurnal(form: Arrivals, random: np.random.Generator) -> Iterator[Instants]:
    period_ps = form.period or 86_400 * PS_PER_S
    swing = (form.peak_to_mean or 1.0) - 1.0
    per_cycle = form.rate * period_ps / PS_PER_S
    phase = np.linspace(0.0, 1.0, CYCLE_KNOTS + 1)
    expected = phase + swing / (2 * np.pi) * (1 - np.cos(2 * np.pi * phase))
    return _cycles(per_cycle, period_ps, (phase, expected), random)


def _bursts(form: Arrivals, random: np.random.Generator) -> Iterator[Instants]:
    assert form.period
    assert form.burst
    assert form.burst_rate
    share = min(form.burst / form.period, 1.0)
    in_burst, between = form.burst_rate * share, form.rate * (1 - share)
    knots = np.array([0.0, share, 1.0]), np.array([0.0, in_burst / (in_burst + between), 1.0])
    return _cycles((in_burst + between) * form.period / PS_PER_S, form.period, knots, random)


def _ramp(form: Arrivals, random: np.random.Generator) -> Iterator[Instants]:
    assert form.period
    assert form.first_rate
    rise_s = form.period / PS_PER_S
    first, slope = form.first_rate, (form.rate - form.first_rate) / rise_s
    in_rise = (form.first_rate + form.rate) / 2 * rise_s
    done = 0.0
    while True:
        counts = done + np.cumsum(random.exponential(1.0, CHUNK))
        done = float(counts[-1])
        rising = np.minimum(counts, in_rise)
        # The root of first t + slope t^2 / 2 = count, in the form that also holds where slope is 0.
        at_s = 2 * rising / (first + np.sqrt(np.maximum(first**2 + 2 * slope * rising, 0.0)))
        at_s += (counts - rising) / form.rate
        _within_clock(float(at_s[-1]) * PS_PER_S)
        yield np.rint(at_s * PS_PER_S).astype(np.int64)


def _cycles(
    per_cycle: float, period_ps: int, knots: tuple[Knots, Knots], random: np.random.Generator
) -> Iterator[Instants]:
    """Arrivals of equal cycles; knots are points of a cycle and the share of its arrivals up to each."""
    phase, expected = knots
    cycles, into = 0, 0.0
    while True:
        done = into + np.cumsum(random.exponential(1.0 / per_cycle, CHUNK))
        whole = np.floor(done)
        _within_clock((cycles + float(whole[-1]) + 1) * period_ps)
        in_cycle = np.rint(np.interp(done - whole, expected, phase) * period_ps).astype(np.int64)
        yield (cycles + whole.astype(np.int64)) * period_ps + in_cycle
        cycles, into = cycles + int(whole[-1]), float(done[-1] - whole[-1])


def _within_clock(at_ps: float) -> None:
    if at_ps > LONGEST_PS:
        raise UnsupportedError(
            "a generated workload of more than 53 days", "a shorter run.duration or workload.limit"
        )
