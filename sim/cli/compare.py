"""`sim compare`: several scenarios, or one along axes, on the same requests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from sim import api
from sim.base.errors import SimError
from sim.cli.check import doubts_on
from sim.cli.counter import Counter
from sim.cli.files import scenario_file, topologies
from sim.cli.trouble import GOOD, MISSED, say
from sim.config.scenario import Scenario
from sim.report.comparison import comparison_lines, markdown, sentences
from sim.report.text import show
from sim.results.store import json_text
from sim.whatif.axes import Axis, axis_of_text
from sim.whatif.compare import Compared, columns_of, compared
from sim.whatif.sweep import How


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for."""

    paths: tuple[Path, ...]
    over: tuple[str, ...]
    sets: tuple[str, ...]
    seeds: int
    baseline: str | None
    jobs: int
    form: str


def compare_scenarios(order: Order) -> int:
    """Carry out an order; the exit code is 1 where a column failed."""
    columns = columns_of(_scenarios(order), [axis_named(text) for text in order.over])
    for doubt in dict.fromkeys(doubt for scenario in columns.values() for doubt in _doubts(scenario)):
        say(f"! {doubt}")
    with Counter("comparing") as counter:
        found = compared(columns, order.seeds, order.baseline, How(order.jobs, told=counter.update))
    if order.form == "json":
        sys.stdout.write(json_text(as_json(found)))
    elif order.form == "markdown":
        sys.stdout.write(markdown(found.comparison, found.differences))
    else:
        show(comparison_lines(found.comparison, found.differences), sys.stdout)
    return MISSED if found.comparison.failed else GOOD


def _doubts(scenario: Scenario) -> list[str]:
    """The doubts about a column; its mistakes are told where the column stands."""
    try:
        return [str(doubt) for doubt in doubts_on(scenario)]
    except SimError:
        return []


def axis_named(text: str) -> Axis:
    """An axis as typed; topologies may go by their names alone."""
    key, equals, values = text.partition("=")
    if key.strip() == "topology" and equals:
        known = topologies()
        parts = [str(known.get(part.strip(), part)) for part in values.split(",")]
        return axis_of_text(f"{key}={','.join(parts)}")
    return axis_of_text(text)


def _scenarios(order: Order) -> dict[str, Scenario]:
    """The scenarios by name: that of their file, with its number where another has it too."""
    found: dict[str, Scenario] = {}
    for path in order.paths:
        scenario = api.load(scenario_file(path), sets=list(order.sets))
        name = path.name if path.is_dir() else path.stem
        number = sum(known == name or known.startswith(f"{name}#") for known in found)
        found[name if not number else f"{name}#{number + 1}"] = scenario
    return found


def as_json(found: Compared) -> dict[str, Any]:
    """Everything that the screen says, and the row of each run."""
    comparison = found.comparison
    return {
        **_plain(comparison),
        "differences": {key: list(values) for key, values in found.differences.values.items()},
        "words": sentences(comparison),
        "rows": plainly(found.rows),
    }


def plainly(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as JSON has them."""
    rows: list[dict[str, Any]] = _plain(table.astype(object).to_dict("records"))
    return rows


def _plain(value: Any) -> Any:
    """Values as JSON has them: no tuples, no NaN."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, float) and isnan(value):
        return None
    return value
