"""The usable rows of a trace in order of arrival: checked, sorted within a window, bad ones counted."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from sim.workload.readers import reader
from sim.workload.rows import PS_PER_S, BadRow, Row
from sim.workload.source import TraceFile

SKIP_HINT = "or set workload.on_bad_row: skip"
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

    `skipped_rows` and `seen_rows` count the latest pass.
    """

    source: TraceFile
    format: str
    rules: ReadRules = ReadRules()
    skipped_rows: int = field(default=0, init=False)
    seen_rows: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Row]:
        self.skipped_rows = self.seen_rows = 0
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
            why = f"none of {self.seen_rows} rows can be used" if self.seen_rows else "no rows"
            raise self.source.error(None, why, "check the file and workload.format with `sim trace info`")

    def _good_rows(self) -> Iterator[Row]:
        """Yield the rows that can be used, in the order of the file; count or refuse the others."""
        for row in reader[self.format](self.source):
            self.seen_rows += 1
            if isinstance(row, Row):
                if row.hash_ids is None or len(row.hash_ids) == -(
                    -row.input_tokens // self.rules.block_tokens
                ):
                    yield row
                    continue
                row = self._wrong_blocks(row)  # noqa: PLW2901  a Row becomes a BadRow
            self._refuse(row)

    def _refuse(self, bad: BadRow) -> None:
        """Stop at a bad row, or count it."""
        if not self.rules.skip_bad_rows:
            raise self.source.error(bad.line, bad.problem, bad.hint)
        self.skipped_rows += 1

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
            f"blocks of {size} tokens need {-(-row.input_tokens // size)}"
        )
        if self.rules.skip_bad_rows:
            return BadRow(row.line, problem, SKIP_HINT)
        fitting = fitting_block_tokens(reader[self.format](self.source))
        if fitting is None:
            return BadRow(row.line, problem, f"mend the row, {SKIP_HINT}")
        return BadRow(
            row.line,
            problem,
            f"all rows fit blocks of {fitting} tokens: set workload.block_tokens: {fitting}",
        )


def fitting_block_tokens(rows: Iterator[Row | BadRow]) -> int | None:
    """Return the power of two that, as block size, fits the hash_ids of all rows, if there is one."""
    fitting = set(BLOCK_SIZES)
    for row in rows:
        if isinstance(row, Row) and row.hash_ids is not None:
            fitting = {size for size in fitting if -(-row.input_tokens // size) == len(row.hash_ids)}
            if not fitting:
                return None
    return max(fitting) if len(fitting) < len(BLOCK_SIZES) else None
