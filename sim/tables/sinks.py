"""Where rows become tables: Arrow tables of the public columns, and the sink that streams them to Parquet.

A chunk becomes a row group, so a long run does not grow in memory; only what the latency between
tokens needs is kept of the segments. Files appear under their names when they are complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.tables.derive import PUBLIC_COLUMNS, SPAN_COLUMNS, public_requests, spans
from sim.tables.digest import RunDigest
from sim.tables.gaps import TokenGaps
from sim.tables.recorder import Integers
from sim.tables.schema import PHASES, SAMPLE_COLUMNS, STATUSES
from sim.tables.uses import Ends, LinkUse

TABLES: tuple[str, ...] = ("requests", "spans", "samples", "links")
LINK_ENDS: tuple[str, ...] = tuple(field.name for field in fields(Ends))
LINK_FIGURES: tuple[str, ...] = ("capacity_bytes_per_s", "carried_bytes", "peak_fraction", "waited_s")
_WORDS = pa.dictionary(pa.int32(), pa.string())
_TYPES: dict[str, pa.DataType] = {
    "request_id": pa.int64(),
    "measured": pa.bool_(),
    "input_tokens": pa.int64(),
    "output_tokens": pa.int64(),
    "cached_tokens": pa.int64(),
    "prefill_replica": pa.int32(),
    "decode_replica": pa.int32(),
    "transfer_link": pa.int32(),
    "fetch_link": pa.int32(),
    **{name: pa.int64() for name in ("hbm_tokens", "dram_tokens", "nvme_tokens", "remote_tokens")},
    "status": _WORDS,
    "arrived_at_ps": pa.int64(),
    "e2e_ps": pa.int64(),
}
SCHEMAS: dict[str, pa.Schema] = {
    "requests": pa.schema(
        [
            *((name, _TYPES.get(name, pa.float64())) for name in PUBLIC_COLUMNS),
            ("block_ids", pa.list_(pa.int64())),
        ]
    ),
    "spans": pa.schema(
        list(zip(SPAN_COLUMNS, (pa.int64(), _WORDS, pa.int64(), pa.int64(), pa.int32()), strict=True))
    ),
    "samples": pa.schema(
        list(zip(SAMPLE_COLUMNS, (pa.int64(), _WORDS, _WORDS, _WORDS, pa.float64()), strict=True))
    ),
    "links": pa.schema(
        [
            ("id", pa.int32()),
            ("name", pa.string()),
            ("kind", _WORDS),
            *((name, pa.list_(pa.int32())) for name in LINK_ENDS),
            *((name, pa.float64()) for name in LINK_FIGURES),
        ]
    ),
}


class ParquetSink:
    """Streams the tables to Parquet files in a folder, which must exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.digest = RunDigest()
        self.gaps = TokenGaps()
        self._writers = {
            name: pq.ParquetWriter(self._unfinished(name), SCHEMAS[name], **write_options(name))
            for name in TABLES
        }

    def requests(self, columns: dict[str, Integers], blocks: Sequence[Sequence[int]]) -> None:
        """Write a chunk of requests, and their spans."""
        self.digest.add_requests(columns)
        self.gaps.add_requests(columns)
        self._writers["requests"].write_table(request_table(columns, blocks))
        self._writers["spans"].write_table(span_table(columns))

    def segments(self, columns: dict[str, Integers]) -> None:
        """Keep of the segments what the gaps between tokens need."""
        self.digest.add_segments(columns)
        self.gaps.add_segments(columns)

    def samples(self, rows: list[tuple[int, str, str, str, float]]) -> None:
        """Write a chunk of samples."""
        self._writers["samples"].write_table(sample_table(rows))

    def links(self, uses: Sequence[LinkUse]) -> None:
        """Write what the links did."""
        self._writers["links"].write_table(link_table(uses))

    def close(self) -> None:
        """Complete the files and give them their names; closing twice is harmless."""
        for name, writer in self._writers.items():
            writer.close()
            self._unfinished(name).replace(self.folder / f"{name}.parquet")
        self._writers = {}

    def _unfinished(self, name: str) -> Path:
        return self.folder / f".{name}.parquet.unfinished"


def write_options(name: str) -> dict[str, Any]:
    """Say how a table is written: only words get dictionaries, which numbers would only grow by."""
    words = [field.name for field in SCHEMAS[name] if field.type == _WORDS]
    return {"compression": "zstd", "use_dictionary": words}


def request_table(columns: dict[str, Integers], blocks: Sequence[Sequence[int]]) -> pa.Table:
    """Recorded requests and their block ids as a table of public columns."""
    public = public_requests(columns)
    schema = SCHEMAS["requests"]
    arrays = [
        _words(public[name], STATUSES)
        if name == "status"
        else pa.array(public[name], schema.field(name).type)
        for name in PUBLIC_COLUMNS
    ]
    return pa.Table.from_arrays([*arrays, _lists(blocks)], schema=schema)


def span_table(columns: dict[str, Integers]) -> pa.Table:
    """The spans of recorded requests as a table."""
    rows = spans(columns)
    schema = SCHEMAS["spans"]
    arrays = [
        _words(rows[name], tuple(PHASES))
        if name == "phase"
        else pa.array(rows[name], schema.field(name).type)
        for name in SPAN_COLUMNS
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def sample_table(rows: Sequence[tuple[int, str, str, str, float]]) -> pa.Table:
    """Samples as a table."""
    schema = SCHEMAS["samples"]
    columns = list(zip(*rows, strict=True)) or [()] * len(SAMPLE_COLUMNS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def link_table(uses: Sequence[LinkUse]) -> pa.Table:
    """What the links did as a table."""
    schema = SCHEMAS["links"]
    columns = {name: [getattr(use.ends, name) for use in uses] for name in LINK_ENDS}
    columns |= {name: [getattr(use, name) for use in uses] for name in schema.names if name not in columns}
    return pa.Table.from_pydict(columns, schema=schema)


def _words(codes: Integers, words: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(words, pa.string()))


def _lists(rows: Sequence[Sequence[int]]) -> pa.ListArray:
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    values = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(offsets[-1]))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
