"""A line on stderr that counts runs: rewritten on a terminal, one line now and then in a log."""

from __future__ import annotations

import sys
from types import TracebackType

LINES_IN_A_LOG = 10


class Counter:
    """Shows how many of how many runs are done."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.is_terminal = sys.stderr.isatty()
        self.said = -1

    def __enter__(self) -> Counter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def update(self, done: int, of: int) -> None:
        """Show the state."""
        if self.is_terminal:
            sys.stderr.write(f"\r\x1b[K {self.what}  {done} of {of} runs")
            sys.stderr.flush()
            return
        step = done * LINES_IN_A_LOG // of if of else LINES_IN_A_LOG
        if step != self.said:
            self.said = step
            print(f"{self.what}: {done} of {of} runs", file=sys.stderr, flush=True)
