"""The highest value of a key at which a scenario still meets its SLO: of a load, mostly.

Model: for each seed alone the value is doubled until the SLO breaks, or halved until it holds, beginning with
the scenario's own; then the gap is halved until it is narrow enough. What was found to hold is the answer of
that seed, and the spread over seeds its uncertainty. All seeds are looked at side by side, a step at a time.
Ignores: that a value above one that breaks might hold again. Bisection would not see it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from sim.base.errors import ConfigError
from sim.config.overrides import Override
from sim.config.scenario import Scenario
from sim.results.differences import flat_of
from sim.results.intervals import Interval, interval
from sim.whatif.axes import NUMBER, Point
from sim.whatif.sweep import How, played, untold
from sim.whatif.trials import GOOD, Trial, trial_at

VALUE = re.compile(rf"(?P<number>{NUMBER})\s*(?P<unit>.*)")
MOST_DOUBLINGS = 12
DIGITS = 4
"""Significant digits of the values that are tried."""


@dataclass
class Search:
    """One seed's search: the highest value that held, the lowest that broke, and what is tried next."""

    tried: Decimal
    is_whole: bool
    holds: Decimal | None = None
    breaks: Decimal | None = None
    why: str = ""
    steps: int = 0

    def learn(self, is_met: bool, why: str) -> None:
        """Take the answer to what was tried, and choose what to try next."""
        self.steps += 1
        if is_met:
            self.holds = self.tried
        else:
            self.breaks, self.why = self.tried, why
        if self.holds is None:
            self.tried = self._rounded(self.tried / 2)
        elif self.breaks is None:
            self.tried = self._rounded(self.tried * 2)
        else:
            self.tried = self._rounded((self.holds + self.breaks) / 2)

    def is_over(self, within: float) -> bool:
        """Whether the gap is narrow enough, or there is nothing left to try."""
        if self.holds is None or self.breaks is None:
            return self.steps > MOST_DOUBLINGS or not self.tried or self.tried == self.breaks
        return (
            self.tried in {self.holds, self.breaks}
            or self.breaks - self.holds <= Decimal(within) * self.holds
        )

    def _rounded(self, value: Decimal) -> Decimal:
        if self.is_whole:
            return Decimal(int(value))
        return Decimal(f"{value:.{DIGITS}g}").normalize()


@dataclass(frozen=True)
class Highest:
    """The searches of all seeds at one point; `problem` says why where they could not be finished."""

    key: str
    unit: str
    labels: Mapping[str, str]
    seeds: tuple[int, ...]
    searches: tuple[Search, ...]
    rows: list[dict[str, Any]] = field(repr=False)
    problem: str = ""

    @property
    def found(self) -> tuple[float | None, ...]:
        """The highest value that held, for each seed."""
        return tuple(None if one.holds is None else float(one.holds) for one in self.searches)

    @property
    def mean(self) -> Interval | None:
        """The mean over seeds with its interval; None where some seed has no answer."""
        if self.problem:
            return None
        known = [value for value in self.found if value is not None]
        return interval(known) if len(known) == len(self.searches) else None

    @property
    def is_open(self) -> bool:
        """Whether some seed never broke, so that the answer is at least what is said."""
        return any(one.breaks is None for one in self.searches)


def find_max(base: Scenario, key: str, point: Point, seeds: int, how: How, within: float = 0.02) -> Highest:
    """Search at one point of a sweep, until the gap is at most so large a part of the answer."""
    if not base.slo:
        hint = "add one to the scenario, such as slo: [ttft p90 < 2 s]"
        raise ConfigError("--find-max", None, None, problem="the scenario has no SLO to meet", hint=hint)
    start, unit = _own_value(base, key)
    numbers = range(base.run.seed, base.run.seed + seeds)
    searches = {seed: Search(start, is_whole=not unit and start == int(start)) for seed in numbers}
    rows: list[dict[str, Any]] = []
    problem = ""
    while active := [seed for seed in numbers if not searches[seed].is_over(within)]:
        values = {seed: f"{searches[seed].tried:f} {unit}".rstrip() for seed in active}
        trials = [_trial(base, point, key, values[seed], seed) for seed in active]
        made = played(trials, replace(how, told=untold))
        rows += made
        problem = next((str(row["reason"]) for row in made if row["status"] != GOOD), "")
        if problem:
            break
        for seed, row in zip(active, made, strict=True):
            searches[seed].learn(row["slo_met"] is True, row["slo_broken"])
        how.told(len(rows), len(rows) + sum(not search.is_over(within) for search in searches.values()))
    return Highest(key, unit, point.labels, tuple(numbers), tuple(searches.values()), rows, problem)


def _trial(base: Scenario, point: Point, key: str, value: str, seed: int) -> Trial:
    tried = Override.of_text(f"{key}={value}", "--find-max")
    return trial_at(base, {**point.labels, key: value}, (*point.overrides, tried), seed)


def _own_value(base: Scenario, key: str) -> tuple[Decimal, str]:
    """The number and the unit that the scenario has at a key."""
    known = flat_of(base)
    found = VALUE.fullmatch(known.get(key, ""))
    if found is None or not Decimal(found["number"]):
        problem = f"there is no number to begin with, but {known.get(key, 'nothing')}"
        hint = (
            "name a key with a number that the scenario sets, such as workload.rate or workload.arrivals.rate"
        )
        raise ConfigError(f"--find-max {key}", None, None, problem=problem, hint=hint)
    return Decimal(found["number"]), found["unit"].strip()
