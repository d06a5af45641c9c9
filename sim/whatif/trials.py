"""Trials: one scenario at one point of a sweep and one seed, and the row that it gives.

A trial is known by a hash of everything that its row depends on: the scenario in full, the files that it
names, and the simulator with its catalogue and packages. So a trial that has been played need not be played
again, and one that would come out differently never passes for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sim import api
from sim.base.errors import SimError
from sim.config.dump import dump
from sim.config.load import load_topology, overlaid
from sim.config.overrides import Override
from sim.config.scenario import Scenario
from sim.results.provenance import PACKAGE, file_sha256, package_versions
from sim.results.row import row_of
from sim.results.store import input_files
from sim.whatif.axes import Point

HASH_DIGITS = 16
GOOD, FAILED = "ok", "failed"
MAKES_NO_ROWS = ("bench", "calibrate", "cli", "report", "templates", "whatif")
"""Packages that may change without a row changing."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A point at a seed. `scenario` is None where the point makes none, and `problem` then says why."""

    labels: Mapping[str, str]
    seed: int
    scenario: Scenario | None
    problem: SimError | None = None

    @property
    def hash(self) -> str | None:
        """What the trial is known by; None where there is nothing to play."""
        return None if self.scenario is None else hash_of(self.scenario)

    def play(self) -> dict[str, Any]:
        """Simulate and return the row, which says why where that fails."""
        if self.scenario is None:
            return self._row(FAILED, str(self.problem), {})
        try:
            run = api.run(self.scenario)
        except SimError as error:
            return self._row(FAILED, str(error), {})
        except Exception as error:
            return self._row(FAILED, f"internal error: {type(error).__name__}: {error}", {})
        if run.figures["interrupted"]:
            raise KeyboardInterrupt
        return self._row(GOOD, "", row_of(run.figures))

    def _row(self, status: str, reason: str, figures: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.labels, "seed": self.seed, "status": status, "reason": reason, **figures}


def trials(base: Scenario, points: Iterable[Point], seeds: int) -> list[Trial]:
    """Each point at each seed, from that of the scenario on."""
    return [trial for point in points for trial in at_seeds(base, point.labels, point.overrides, seeds)]


def at_seeds(
    base: Scenario, labels: Mapping[str, str], overrides: Sequence[Override], seeds: int
) -> list[Trial]:
    """One point at each seed."""
    first = base.run.seed
    return [trial_at(base, labels, overrides, seed) for seed in range(first, first + seeds)]


def refuse_hopeless(planned: Sequence[Trial]) -> None:
    """Where no trial can be played, the mistake is in the question: raise the first one's."""
    if planned and all(trial.scenario is None for trial in planned):
        assert planned[0].problem is not None
        raise planned[0].problem


def trial_at(base: Scenario, labels: Mapping[str, str], overrides: Sequence[Override], seed: int) -> Trial:
    """One point at one seed."""
    try:
        scenario = overlaid(base, [*overrides, Override.of_value("run.seed", seed)])
    except SimError as problem:
        return Trial(labels, seed, None, problem)
    return Trial(labels, seed, scenario)


def hash_of(scenario: Scenario) -> str:
    """A hash of everything that the row of a scenario depends on."""
    known = {
        "scenario": dump(scenario, Path("/")),
        "topology": dump(load_topology(scenario.topology), Path("/")),
        "files": [file_sha256(path) for path in input_files(scenario)],
        "simulator": _simulator(),
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:HASH_DIGITS]


@cache
def _simulator() -> tuple[tuple[str, str], ...]:
    """The simulator as far as it makes rows, its catalogue, and the packages that it rests on."""
    parts = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in {".py", ".yaml"}]
    files = [(path.relative_to(PACKAGE), path) for path in parts]
    return (
        *[(str(name), file_sha256(path)) for name, path in files if name.parts[0] not in MAKES_NO_ROWS],
        *package_versions().items(),
    )


def finished_in(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows that earlier sweeps left in a folder, by the hash of their trial."""
    for path in sorted(folder.glob("*.json")):
        yield path.stem, json.loads(path.read_text(encoding="utf-8"))
