"""The requests of a saved run, read back in order of arrival to be replayed.

Rows stream in batches when the file is in order of arrival; a file in another order (that of
completion, say) is sorted first, which holds its five columns in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sim.base.errors import ValueProblem
from sim.workload.rows import BadRow, Row, hash_ids, instant_ps, tokens
from sim.workload.source import TraceFile

COLUMNS = ("request_id", "arrived_at_ps", "input_tokens", "output_tokens")
BLOCKS = "block_ids"


def rows_of_run(source: TraceFile) -> Iterator[Row | BadRow]:
    """Yield the requests of a run folder or of its requests.parquet; lines count rows from 1."""
    import pyarrow as pa  # noqa: PLC0415  slow to import, and only this format needs it
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = source.path / "requests.parquet" if source.path.is_dir() else source.path
    if not path.is_file():
        raise source.error(
            None, "a folder, but not of a run", "give a trace file, or the folder of a saved run"
        )
    try:
        table = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as failure:
        raise source.error(
            None, f"cannot be read: {failure}", "give a run folder or its requests.parquet"
        ) from None
    names = table.schema_arrow.names
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise source.error(
            None, f"no column {', '.join(missing)}", "give the requests.parquet of a saved run"
        )
    wanted = [*COLUMNS, *([BLOCKS] if BLOCKS in names else [])]
    extra = tuple(name for name in names if name not in wanted)
    line = 0
    for batch in _in_order(table, wanted):
        columns = batch.to_pydict()
        blocks = columns.get(BLOCKS) or [None] * batch.num_rows
        for at, given, made, ids in zip(*(columns[name] for name in COLUMNS[1:]), blocks, strict=True):
            line += 1
            yield _row(line, (at, given, made, ids or None), extra)


def _row(line: int, values: tuple[Any, Any, Any, Any], extra: tuple[str, ...]) -> Row | BadRow:
    at, given, made, ids = values
    try:
        return Row(
            line,
            instant_ps(at, "arrived_at_ps", 1),
            tokens(given, "input_tokens"),
            tokens(made, "output_tokens"),
            hash_ids(ids, BLOCKS),
            extra,
        )
    except ValueProblem as bad:
        return BadRow(line, bad.problem, bad.hint or "")


def _in_order(table: Any, columns: list[str]) -> Iterator[Any]:
    """Yield record batches in order of (arrival, id)."""
    last = (-1, -1)
    for batch in table.iter_batches(columns=["arrived_at_ps", "request_id"]):
        arrived, ids = (column.to_pylist() for column in batch.columns)
        for key in zip(arrived, ids, strict=True):
            if None not in key and key < last:
                whole = table.read(columns=columns)
                yield from whole.sort_by(
                    [("arrived_at_ps", "ascending"), ("request_id", "ascending")]
                ).to_batches()
                return
            last = key if None not in key else last
    yield from table.iter_batches(columns=columns)
