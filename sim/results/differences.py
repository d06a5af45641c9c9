"""The keys in which scenarios differ, with defaults spelt out, and whether they see the same requests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.config.scenario import Scenario

SAYS_NOTHING = ("name", "description", "sim")
OF_REQUESTS = ("workload.", "run.seed", "run.start", "run.duration", "run.warmup")
ABSENT = "–"


@dataclass(frozen=True)
class Differences:
    """For each key that is not the same everywhere its value in each column, in their order."""

    columns: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]]

    @property
    def of_requests(self) -> tuple[str, ...]:
        """Those keys that change which requests come, and when."""
        return tuple(key for key in self.values if key.startswith(OF_REQUESTS))


def differences_of(columns: Mapping[str, Scenario]) -> Differences:
    """Compare scenarios key by key; items of lists go by their names."""
    flat = [flat_of(scenario) for scenario in columns.values()]
    keys = list(dict.fromkeys(key for one in flat for key in one))
    rows = {key: tuple(one.get(key, ABSENT) for one in flat) for key in keys}
    return Differences(tuple(columns), {key: row for key, row in rows.items() if len(set(row)) > 1})


def flat_of(scenario: Scenario) -> dict[str, str]:
    """Every key of a scenario with its value as it is written."""
    return dict(_flat("", _tree(scenario)))


def _tree(scenario: Scenario) -> Any:
    tree = scenario.model_dump(mode="json", exclude_none=True)
    return {key: value for key, value in tree.items() if key not in SAYS_NOTHING}


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{path}.{key}" if path else key, item)
    elif (
        isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value)
    ):
        for item in value:
            yield from _flat(f"{path}.{item['name']}", {k: v for k, v in item.items() if k != "name"})
    else:
        yield path, _said(value)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_said(item) for item in value) or "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return Path(text).name if os.path.isabs(text) else text  # noqa: PTH117 - a text that may be a path
