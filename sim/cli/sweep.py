"""`sim sweep`: a scenario over the values of keys, or the highest value of one that meets the SLO."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from sim import api
from sim.base.errors import ConfigError
from sim.cli.check import shown_doubts
from sim.cli.compare import axis_named, plainly
from sim.cli.counter import Counter
from sim.cli.files import scenario_file
from sim.cli.trouble import GOOD, MISSED
from sim.config.scenario import Scenario
from sim.report.sweep import highest_lines, spread, sweep_lines
from sim.report.text import show
from sim.results.store import RUNS, json_text, slug
from sim.results.sweptpoints import points_of
from sim.whatif.axes import Axis, points
from sim.whatif.highest import Highest, find_max
from sim.whatif.sweep import How, Sweep, swept


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for."""

    path: Path
    over: tuple[str, ...]
    highest: str | None
    sets: tuple[str, ...]
    variant: str | None
    seeds: int
    jobs: int
    out: Path | None
    as_json: bool


def sweep_scenario(order: Order) -> int:
    """Carry out an order; the exit code is 1 where a point failed, or no value meets the SLO."""
    scenario = api.load(scenario_file(order.path), sets=list(order.sets), variant=order.variant)
    axes = [axis_named(text) for text in order.over]
    if not axes and order.highest is None:
        hint = "add --over workload.rate=20..200:20 req/s, or --find-max workload.rate"
        raise ConfigError("sweep", None, None, problem="there is nothing to vary", hint=hint)
    shown_doubts(scenario)
    folder = order.out if order.out is not None else RUNS / f"{slug(scenario.name)}-sweep"
    folder.mkdir(parents=True, exist_ok=True)
    if order.highest is not None:
        return _highest(order, scenario, axes, folder)
    with Counter("sweep") as counter:
        found = swept(scenario, axes, order.seeds, How(order.jobs, folder, counter.update))
    if order.as_json:
        sys.stdout.write(
            json_text({"axes": list(found.axes), "rows": plainly(found.table), "folder": str(folder)})
        )
    else:
        show(sweep_lines(points_of(found.table, found.axes), found.axes, _files(folder)), sys.stdout)
    return MISSED if len(found.failed) else GOOD


def _highest(order: Order, scenario: Scenario, axes: list[Axis], folder: Path) -> int:
    """Search at each point of the axes, and keep all rows that were made on the way."""
    key = order.highest or ""
    with Counter("find-max") as counter:
        how = How(order.jobs, folder, counter.update)
        found = [find_max(scenario, key, point, order.seeds, how) for point in points(axes)]
    table = pd.DataFrame([row for one in found for row in one.rows])
    Sweep(table, (*[axis.key for axis in axes], key)).write(folder)
    if order.as_json:
        answers = [_plain_answer(one) for one in found]
        tree = {"key": key, "answers": answers, "rows": plainly(table), "folder": str(folder)}
        sys.stdout.write(json_text(tree))
    else:
        limits = " and ".join(limit.text for limit in scenario.slo)
        said = [(" ".join(one.labels.values()), _answer(one), _details(one)) for one in found]
        show(highest_lines(f"{key} that meets {limits}", said, len(table), _files(folder)), sys.stdout)
    return MISSED if any(one.mean is None for one in found) else GOOD


def _plain_answer(one: Highest) -> dict[str, Any]:
    half = None if one.mean is None or isnan(one.mean.half) else one.mean.half
    return {
        "point": dict(one.labels),
        "unit": one.unit,
        "seeds": list(one.seeds),
        "highest": list(one.found),
        "breaks_at": [None if own.breaks is None else float(own.breaks) for own in one.searches],
        "mean": None if one.mean is None else one.mean.mean,
        "half": half,
        "problem": one.problem or None,
    }


def _answer(one: Highest) -> str:
    if one.problem:
        return f"✗ {one.problem}"
    if one.mean is None:
        return "none: at some seed no value was seen to meet it"
    least = "at least " if one.is_open else ""
    seeds = "one seed: no interval" if len(one.seeds) == 1 else f"95 % interval over {len(one.seeds)} seeds"
    return f"{least}{spread(one.mean, one.unit)}   {seeds}"


def _details(one: Highest) -> list[str]:
    if one.problem:
        return []
    said = []
    for seed, search in zip(one.seeds, one.searches, strict=True):
        holds = "nothing" if search.holds is None else f"{search.holds:f} {one.unit}".rstrip()
        breaks = "" if search.breaks is None else f", {search.breaks:f} breaks {search.why}"
        said.append(f"seed {seed}: {holds} holds{breaks}")
    return said


def _files(folder: Path) -> str:
    return f"{folder}/sweep.parquet and sweep.csv; the same command goes on where it was stopped"
