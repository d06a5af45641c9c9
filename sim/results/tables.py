"""The tables of a run, wherever they lie: in a sink in memory, or as Parquet files in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.tables.digest import RunDigest
from sim.tables.gaps import TokenGaps
from sim.tables.recorder import MemorySink
from sim.tables.sinks import (
    TABLES,
    ParquetSink,
    link_table,
    request_table,
    sample_table,
    span_table,
    write_options,
)


class Tables(Protocol):
    """Gives the tables requests, spans, samples and links."""

    def read(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Read a table, or some columns of it."""

    def write(self, folder: Path) -> None:
        """Put all tables as Parquet files in a folder, unless they are there."""


@dataclass(frozen=True, slots=True)
class FolderTables:
    """Tables in the files of a folder."""

    folder: Path

    def read(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Read a table, or some columns of it."""
        table = pq.read_table(self.folder / f"{name}.parquet", columns=list(columns) if columns else None)
        return _frame(table)

    def write(self, folder: Path) -> None:
        """Copy the files to another folder."""
        for name in TABLES:
            target = folder / f"{name}.parquet"
            if not target.exists():
                target.write_bytes((self.folder / target.name).read_bytes())


@dataclass(frozen=True, slots=True)
class MemoryTables:
    """Tables made from what a sink in memory holds."""

    sink: MemorySink

    def read(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Make a table, or some columns of it."""
        table = self._table(name)
        return _frame(table.select(list(columns)) if columns else table)

    def write(self, folder: Path) -> None:
        """Write all tables."""
        for name in TABLES:
            pq.write_table(self._table(name), folder / f"{name}.parquet", **write_options(name))

    def _table(self, name: str) -> pa.Table:
        if name == "links":
            return link_table(self.sink.link_rows)
        if name == "samples":
            return sample_table(self.sink.sample_rows)
        columns = self.sink.request_table()
        return request_table(columns, self.sink.block_rows) if name == "requests" else span_table(columns)


def tables_of(sink: MemorySink | ParquetSink) -> tuple[Tables, str, TokenGaps]:
    """What a sink holds: its tables, the digest, and the gaps between tokens. Closes the sink."""
    if isinstance(sink, ParquetSink):
        sink.close()
        return FolderTables(sink.folder), sink.digest.text(), sink.gaps
    digest, gaps = RunDigest(), TokenGaps()
    for chunk in sink.request_chunks:
        digest.add_requests(chunk)
        gaps.add_requests(chunk)
    for chunk in sink.segment_chunks:
        digest.add_segments(chunk)
        gaps.add_segments(chunk)
    return MemoryTables(sink), digest.text(), gaps


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.unify_dictionaries().to_pandas()
    return frame
