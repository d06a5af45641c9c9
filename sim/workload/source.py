"""A trace file on disk, read line by line; gzip is seen by its first bytes, not by its name."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from sim.workload.errors import TraceError

GZIP_MAGIC = b"\x1f\x8b"


class TraceFile:
    """A trace at a path. `shown` is the name that errors print."""

    def __init__(self, path: Path, shown: str | None = None) -> None:
        self.path = path
        self.shown = shown or str(path)

    def error(self, line: int | None, problem: str, hint: str) -> TraceError:
        """Make the error that points at a line of this file."""
        return TraceError(self.shown, line, problem, hint)

    def open(self) -> IO[bytes]:
        """Open the raw bytes, unpacked."""
        try:
            with self.path.open("rb") as head:
                packed = head.read(2) == GZIP_MAGIC
            return gzip.open(self.path, "rb") if packed else self.path.open("rb")  # type: ignore[return-value]
        except OSError as failure:
            raise self.error(
                None, f"cannot be read: {failure.strerror or failure}", "check the path and its rights"
            ) from None

    def lines(self) -> Iterator[str]:
        """Yield the lines as text without their ends; a byte-order mark and CRLF go unnoticed."""
        number = 0
        with self.open() as raw:
            try:
                for number, line in enumerate(raw, 1):
                    text = line.decode("utf-8", "replace").rstrip("\r\n")
                    yield text.removeprefix("\ufeff") if number == 1 else text
            except (EOFError, zlib.error, gzip.BadGzipFile) as failure:
                raise self.error(
                    number + 1, f"the gzip data is damaged: {failure}", "fetch or pack the file again"
                ) from None

    def first_line(self) -> str:
        """Return the first line, empty if there is none."""
        return next(self.lines(), "")
