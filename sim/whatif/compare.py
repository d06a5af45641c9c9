"""Scenarios compared: several files, or one along axes, each played with the same seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from sim.base.errors import ConfigError, SimError, did_you_mean
from sim.config.load import overlaid
from sim.config.scenario import Scenario
from sim.results.comparison import COLUMN, Comparison, compare_rows
from sim.results.differences import Differences, differences_of
from sim.whatif.axes import Axis, axis_of_values, points
from sim.whatif.sweep import How, played
from sim.whatif.trials import Trial, at_seeds


@dataclass(frozen=True)
class Compared:
    """A comparison, and the keys in which the scenarios differ."""

    comparison: Comparison
    differences: Differences
    rows: pd.DataFrame


def compare(
    scenarios: Mapping[str, Scenario],
    over: Mapping[str, Iterable[object]] | None = None,
    seeds: int = 5,
    baseline: str | None = None,
    jobs: int = -1,
) -> Compared:
    """Play scenarios, each with each combination of values, with the same seeds, and compare them."""
    axes = [axis_of_values(key, values) for key, values in (over or {}).items()]
    return compared(columns_of(scenarios, axes), seeds, baseline, How(jobs))


def columns_of(scenarios: Mapping[str, Scenario], axes: Sequence[Axis]) -> dict[str, Scenario]:
    """The columns by name: that of the scenario, of the point, or of both where there are several of both."""
    found: dict[str, Scenario] = {}
    for name, scenario in scenarios.items():
        for point in points(axes):
            label = " ".join(_short(value) for value in point.labels.values())
            parts = [name, label] if len(scenarios) > 1 or not label else [label]
            found[" ".join(part for part in parts if part)] = overlaid(scenario, point.overrides)
    if len(found) < 2:
        problem = "there is nothing to compare"
        hint = "name two scenarios, or one and --over KEY=VALUE,VALUE"
        raise ConfigError("compare", None, None, problem=problem, hint=hint)
    return found


def compared(columns: Mapping[str, Scenario], seeds: int, baseline: str | None, how: How) -> Compared:
    """Play all columns; the first is the baseline unless another is named."""
    base = baseline if baseline is not None else next(iter(columns))
    if base not in columns:
        hint = did_you_mean(base, columns)
        raise ConfigError("--baseline", None, None, problem=f"there is no column '{base}'", hint=hint)
    planned = [trial for name, scenario in columns.items() for trial in _trials(name, scenario, seeds)]
    rows = pd.DataFrame(played(planned, how))
    failed = rows[(rows[COLUMN] == base) & (rows["status"] != "ok")]
    if len(failed):
        raise SimError(f"the baseline '{base}' cannot be played: {failed['reason'].iloc[0]}")
    return Compared(compare_rows(rows, base), differences_of(columns), rows)


def _trials(name: str, scenario: Scenario, seeds: int) -> list[Trial]:
    return at_seeds(scenario, {COLUMN: name}, (), seeds)


def _short(value: str) -> str:
    """A value as the name of a column: of a path the name of the file alone."""
    return Path(value).stem if value.endswith((".yaml", ".yml", ".jsonl", ".json")) else value
