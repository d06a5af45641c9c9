"""Measure cases one after the other, within a time limit, and keep what came of each.

A case that is refused is noted with the reason; what the limit leaves no room for is noted too. After each
table what there is so far is handed on, so that a run that is cut short has lost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median

from sim.calibrate.cases import Case, StepCase
from sim.calibrate.meter import Meter, Reading, RefusedError
from sim.calibrate.samples import Clock, Policy, Summary, repeated


@dataclass(frozen=True, slots=True)
class Load:
    """What the device did while a table was measured."""

    during: str
    sm_clock_mhz: int
    sm_clock_lowest_mhz: int
    power_w: float
    temperature_c: float

    @classmethod
    def of(cls, during: str, readings: Sequence[Reading]) -> Load:
        """Summarise readings; there must be one."""
        clocks = [reading.sm_clock_mhz for reading in readings]
        return cls(
            during,
            round(median(clocks)),
            min(clocks),
            round(median(reading.power_w for reading in readings), 1),
            max(reading.temperature_c for reading in readings),
        )


@dataclass(slots=True)
class Results:
    """What has been measured so far."""

    times: list[tuple[Case, Summary]] = field(default_factory=list)
    load: list[Load] = field(default_factory=list)
    refused: list[tuple[Case, str]] = field(default_factory=list)
    left_out: list[Case] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Session:
    """How to measure: with what clock, how often, for how long, and who is told.

    `tell` hears one line for each table, `keep` gets the results so far after each.
    """

    clock: Clock
    policy: Policy
    limit_s: float
    tell: Callable[[str], None]
    keep: Callable[[Results], None]


def section(case: Case) -> str:
    """The table of a file that a case goes to, for people."""
    return f"{case.of.name} {case.table}" if isinstance(case, StepCase) else case.table


def measured(cases: Iterable[Case], meter: Meter, session: Session) -> Results:
    """Measure cases in their order."""
    results, started = Results(), session.clock()
    for name, group in groupby(cases, section):
        members = list(group)
        for case in members:
            if session.clock() - started > session.limit_s:
                results.left_out.append(case)
            else:
                _measure(case, meter, session, results)
        readings = meter.readings()
        if readings:
            results.load.append(Load.of(name, readings))
        results.seconds = round(session.clock() - started, 1)
        session.tell(_line(name, members, results))
        session.keep(results)
    return results


def _measure(case: Case, meter: Meter, session: Session, results: Results) -> None:
    try:
        with meter.prepared(case) as once:
            samples = repeated(once, session.clock, session.policy)
    except RefusedError as refusal:
        results.refused.append((case, str(refusal)))
        return
    results.times.append((case, Summary.of(samples)))


def _line(name: str, members: Sequence[Case], results: Results) -> str:
    refused = sum(section(case) == name for case, _ in results.refused)
    left_out = sum(section(case) == name for case in results.left_out)
    parts = [f"{len(members) - refused - left_out} of {len(members)} measured"]
    if refused:
        parts.append(f"{refused} refused")
    if left_out:
        parts.append(f"{left_out} left out for want of time")
    return f"{results.seconds:6.0f} s  {name}: {', '.join(parts)}"
