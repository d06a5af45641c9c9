"""A sweep: every point of some axes at several seeds, on all cores, as one tidy table.

Each trial that is done leaves its row in a file of its own, named by its hash and moved into place whole, so
that whatever stops a sweep costs at most the trials under way, and the same sweep started again goes on where
it was. Failed trials are rows with a reason, and are tried again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from sim.base.errors import ConfigError
from sim.config.scenario import Scenario
from sim.whatif.axes import Axis, axis_of_values, points
from sim.whatif.trials import FAILED, Trial, finished_in, refuse_hopeless, trials

TRIALS = "trials"
TABLE = "sweep"


def untold(done: int, of: int) -> None:
    """Tell nobody how many of how many trials are done."""


@dataclass(frozen=True, slots=True)
class How:
    """How trials are played: in how many processes, -1 for all cores; where rows are kept; who is told."""

    jobs: int = -1
    folder: Path | None = None
    told: Callable[[int, int], object] = untold


@dataclass(frozen=True)
class Sweep:
    """The table of a sweep: a row for each point and seed, the axes as columns before the figures."""

    table: pd.DataFrame
    axes: tuple[str, ...]

    @property
    def failed(self) -> pd.DataFrame:
        """The rows of trials that failed, with their reasons."""
        return self.table[self.table["status"] == FAILED]

    def write(self, folder: Path) -> None:
        """Put the table as Parquet and as CSV into a folder."""
        self.table.to_parquet(folder / f"{TABLE}.parquet", index=False)
        self.table.to_csv(folder / f"{TABLE}.csv", index=False)


def sweep(
    base: Scenario,
    over: Mapping[str, Iterable[object]],
    seeds: int = 1,
    jobs: int = -1,
    out: Path | str | None = None,
) -> Sweep:
    """Play a scenario with each combination of values, at so many seeds from its own on.

    `jobs` is the number of processes, -1 for all cores. With `out`, rows are kept in that folder, and what is
    there already is not played again.
    """
    axes = [axis_of_values(key, values) for key, values in over.items()]
    return swept(base, axes, seeds, How(jobs, None if out is None else Path(out)))


def swept(base: Scenario, axes: Sequence[Axis], seeds: int, how: How) -> Sweep:
    """The same for axes of the command line. Where it is broken off, the table is of what is done."""
    planned = trials(base, points(axes), seeds)
    refuse_hopeless(planned)
    names = tuple(axis.key for axis in axes)
    try:
        rows = played(planned, how)
    except KeyboardInterrupt:
        if how.folder is not None:
            Sweep(pd.DataFrame(list(_known(planned, how.folder).values())), names).write(how.folder)
        raise
    found = Sweep(pd.DataFrame(rows), names)
    if how.folder is not None:
        found.write(how.folder)
    return found


def played(planned: Sequence[Trial], how: How) -> list[dict[str, Any]]:
    """The rows of trials in their order: those known from a folder, and the others played."""
    rows: dict[int, dict[str, Any]] = {}
    if how.folder is not None:
        (how.folder / TRIALS).mkdir(parents=True, exist_ok=True)
        rows = _known(planned, how.folder)
    rows |= {i: trial.play() for i, trial in enumerate(planned) if trial.scenario is None}
    how.told(len(rows), len(planned))
    missing = [(i, trial, how.folder) for i, trial in enumerate(planned) if i not in rows]
    for i, row in _results(missing, how.jobs):
        rows[i] = row
        how.told(len(rows), len(planned))
    return [rows[i] for i in range(len(planned))]


def _known(planned: Sequence[Trial], folder: Path) -> dict[int, dict[str, Any]]:
    """The rows that a folder holds of trials, by their places."""
    known = dict(finished_in(folder / TRIALS))
    hashes = [trial.hash for trial in planned]
    return {
        i: {**known[digest], **trial.labels, "seed": trial.seed}
        for i, (trial, digest) in enumerate(zip(planned, hashes, strict=True))
        if digest in known
    }


Task = tuple[int, Trial, Path | None]


def _results(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of tasks as they come: played here where one process is to do it, else in several."""
    if jobs == 1 or len(tasks) <= 1:
        yield from (_done(*task) for task in tasks)
        return
    from joblib import Parallel, delayed  # noqa: PLC0415 - slow to import

    workers = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    try:
        yield from workers(delayed(_done)(*task) for task in tasks)
    except BrokenExecutor:
        problem = "a process was killed, perhaps for want of memory"
        hint = "start it again with fewer --jobs; with --out, what is done is kept"
        raise ConfigError("--jobs", None, None, problem=problem, hint=hint) from None


def _done(number: int, trial: Trial, folder: Path | None) -> tuple[int, dict[str, Any]]:
    """Play a trial and leave its row behind, unless it failed."""
    row = trial.play()
    if folder is not None and row["status"] != FAILED:
        path = folder / TRIALS / f"{trial.hash}.json"
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(row), encoding="utf-8")
        unfinished.replace(path)
    return number, row
