"""A Run: what one simulation answered, in memory or in its folder, with the same questions to both.

Values, not handles: a Run needs no simulator to be read, kept or compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from sim.base.errors import Advice
from sim.config.scenario import Scenario
from sim.results import words
from sim.results.advice import advice_on
from sim.results.kvpool import tiers_over_time
from sim.results.links import kinds_over_time
from sim.results.measured import COLUMNS, measure
from sim.results.metrics import Figures, figures_of
from sim.results.tables import FolderTables, Tables, tables_of
from sim.tables.metrics import LATENCIES, STATISTICS
from sim.tables.recorder import MemorySink
from sim.tables.sinks import ParquetSink
from sim.tables.uses import Outcome

SUMMARY_FILE = "summary.json"
PROVENANCE_FILE = "provenance.json"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The tables and figures of one simulation.

    `figures` is what summary.json holds. `scenario` and `outcome` are there when the run was made in
    this process, None when it was read from `folder`; `provenance` is filled once the run is saved.
    """

    figures: Figures
    tables: Tables
    scenario: Scenario | None = None
    outcome: Outcome | None = None
    folder: Path | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_sink(cls, sink: MemorySink | ParquetSink, outcome: Outcome, scenario: Scenario) -> Run:
        """The run whose rows went into a sink, which is closed by this."""
        tables, digest, gaps = tables_of(sink)
        measured = measure(tables.read("requests", COLUMNS), gaps)
        figures: Figures = {
            "name": scenario.name,
            "seed": scenario.run.seed,
            "digest": digest,
            **figures_of(measured, outcome, scenario.slo, scenario.cost),
            "link_kinds": kinds_over_time(tables.read("samples")),
            "kv_pool_over_time": tiers_over_time(tables.read("samples")),
            "warnings": [asdict(advice) for advice in advice_on(measured, outcome, scenario)],
        }
        return cls(figures, tables, scenario, outcome)

    @property
    def digest(self) -> str:
        """Twelve digits, equal where two runs did exactly the same."""
        return str(self.figures["digest"])

    @property
    def is_slo_met(self) -> bool | None:
        """Whether every limit of the SLO is met; None where there is none."""
        met: bool | None = self.figures["slo_met"]
        return met

    @property
    def warnings(self) -> list[Advice]:
        """Doubts about the result, with remedies."""
        return [Advice(**entry) for entry in self.figures["warnings"]]

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row for each request, by request id: the columns of requests.parquet."""
        return self.tables.read("requests").sort_values("request_id", ignore_index=True)

    @cached_property
    def spans(self) -> pd.DataFrame:
        """One row for each phase of each request that took time."""
        return self.tables.read("spans")

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Readings over time, in long form."""
        return self.tables.read("samples")

    @cached_property
    def links(self) -> pd.DataFrame:
        """One row for each link that carried something: what it could, what it did, who waited for it."""
        return self.tables.read("links")

    def summary(self) -> pd.DataFrame:
        """Latencies in seconds: a row for each metric, a column for each statistic."""
        rows = {f"{name}_s": self.figures[f"{name}_s"] for name in LATENCIES}
        table = pd.DataFrame(
            {name: [row[name] for row in rows.values()] for name in STATISTICS}, index=list(rows)
        )
        return table.astype(float)

    def saved(self, folder: Path, provenance: Mapping[str, Any]) -> Run:
        """The same run, now in its folder."""
        return replace(self, folder=folder, tables=FolderTables(folder), provenance=provenance)

    def __repr__(self) -> str:
        return "\n".join(_lines(self.figures))


def open_run(folder: str | Path) -> Run:
    """The run that was saved in a folder."""
    path = Path(folder)
    figures = json.loads((path / SUMMARY_FILE).read_text())
    provenance = json.loads((path / PROVENANCE_FILE).read_text())
    return Run(figures, FolderTables(path), folder=path, provenance=provenance)


def _lines(figures: Figures) -> Iterator[str]:
    yield " · ".join(words.headline(figures))
    for entry in figures["slo"]:
        yield f"{words.mark(entry['is_met'])} {words.verdict(entry)}"
    yield f"  goodput {words.goodput(figures)}"
    table = words.aligned([["", "", *STATISTICS], *words.latency_table(figures)])
    yield from (line.rstrip() for line in table)
    yield words.counts(figures)
