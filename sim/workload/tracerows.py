"""The usable rows of a trace in order of arrival: checked, sorted within a window, bad ones counted."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from sim.workload.errors import TraceError
from sim.workload.readers import reader
from sim.workload.rows import PS_PER_S, BadRow, Row
from sim.workload.source import TraceFile

SKIP_HINT = "or set workload.on_bad_row: skip"
SHOWN_BAD_ROWS = 5
BLOCK_SIZES = tuple(2**power for power in range(17))


@dataclass(frozen=True, slots=True)
class ReadRules:
    """How a trace is read: tokens of one hashed block, sorting window, what happens to bad rows."""

    block_tokens: int = 512
    sort_window_ps: int = 10 * PS_PER_S
    skip_bad_rows: bool = False


@dataclass
class TraceRows:
    """The good rows of a trace in order of arrival; iterate again to read the file again.

    `seen_rows`, `skipped_rows` and the first few `bad_rows` are those of the latest pass.
    """

    source: TraceFile
    format: str
    rules: ReadRules = ReadRules()
    skipped_rows: int = field(default=0, init=False)
    seen_rows: int = field(default=0, init=False)
    bad_rows: list[BadRow] = field(default_factory=list, init=False)

    def __iter__(self) -> Iterator[Row]:
        self.skipped_rows = self.seen_rows = 0
        self.bad_rows = []
        waiting: list[tuple[int, int, Row]] = []
        newest_ps, window_ps = 0, self.rules.sort_window_ps
        for row in self._good_rows():
            if row.at_ps < newest_ps - window_ps:
                self._refuse(self._late(row, newest_ps))
                continue
            newest_ps = max(newest_ps, row.at_ps)
            heapq.heappush(waiting, (row.at_ps, row.line, row))
            while waiting[0][0] < newest_ps - window_ps:
                yield heapq.heappop(waiting)[2]
        while waiting:
            yield heapq.heappop(waiting)[2]
        if self.seen_rows == self.skipped_rows:
            raise self._useless()

    def _good_rows(self) -> Iterator[Row]:
        """Yield the rows that can be used, in the order of the file; count or refuse the others."""
        for row in reader[self.format](self.source):
            self.seen_rows += 1
            if isinstance(row, Row):
                if row.hash_ids is None or len(row.hash_ids) == blocks_of(row, self.rules.block_tokens):
                    yield row
                    continue
                row = self._wrong_blocks(row)  # noqa: PLW2901  a Row becomes a BadRow
            self._refuse(row)

    def _refuse(self, bad: BadRow) -> None:
        """Stop at a bad row, or count it."""
        if not self.rules.skip_bad_rows:
            raise self.source.error(bad.line, bad.problem, bad.hint)
        self.skipped_rows += 1
        if len(self.bad_rows) < SHOWN_BAD_ROWS:
            self.bad_rows.append(bad)

    def _useless(self) -> TraceError:
        if not self.bad_rows:
            return self.source.error(None, "no requests in this file", "check that it is a trace")
        first = self.bad_rows[0]
        problem = f"none of {self.seen_rows} rows can be used; here: {first.problem}"
        return self.source.error(first.line, problem, first.hint.removesuffix(f", {SKIP_HINT}"))

    def _late(self, row: Row, newest_ps: int) -> BadRow:
        late_s = (newest_ps - row.at_ps) / PS_PER_S
        window_s = self.rules.sort_window_ps / PS_PER_S
        return BadRow(
            row.line,
            f"arrives {late_s:.6g} s before a row above it; workload.sort_window is {window_s:.6g} s",
            f"sort the file, or set workload.sort_window to {late_s:.6g} s or more, {SKIP_HINT}",
        )

    def _wrong_blocks(self, row: Row) -> BadRow:
        size, given = self.rules.block_tokens, len(row.hash_ids or ())
        problem = (
            f"{given} hash_ids for {row.input_tokens} input tokens; "
            f"blocks of {size} tokens need {blocks_of(row, size)}"
        )
        if self.bad_rows:  # the remedy was looked for at the first one
            return BadRow(row.line, problem, self.bad_rows[0].hint)
        fitting = fitting_block_tokens(reader[self.format](self.source))
        if fitting is None:
            return BadRow(row.line, problem, f"mend the row, {SKIP_HINT}")
        return BadRow(
            row.line,
            problem,
            f"all rows fit blocks of {fitting} tokens: set workload.block_tokens: {fitting}",
        )


def blocks_of(row: Row, block_tokens: int) -> int:
    """Return how many blocks of that size the prompt of a row starts."""
    return -(-row.input_tokens // block_tokens)


def fitting_block_tokens(rows: Iterator[Row | BadRow]) -> int | None:
    """Return the power of two that, as block size, fits the hash_ids of all rows, if there is one."""
    fitting = set(BLOCK_SIZES)
    for row in rows:
        if isinstance(row, Row) and row.hash_ids is not None:
            fitting = {size for size in fitting if blocks_of(row, size) == len(row.hash_ids)}
            if not fitting:
                return None
    return min(fitting) if len(fitting) < len(BLOCK_SIZES) else None
