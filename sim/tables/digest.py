"""The digest of a run: twelve hex digits that are equal exactly where two runs did the same.

Every recorded integer counts: all columns of requests and segments, in the order in which they were
recorded, which is itself a result. Hashed column by column, so that chunk sizes do not matter.
Ignores: samples (their interval is a matter of taste) and the block ids, which are input.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from sim.tables.recorder import Integers
from sim.tables.schema import REQUEST_COLUMNS, SEGMENT_COLUMNS

if TYPE_CHECKING:
    from hashlib import _Hash

DIGEST_DIGITS = 12


class RunDigest:
    """Takes rows as they come; `text()` is the digest of all so far."""

    def __init__(self) -> None:
        self._requests = {name: hashlib.sha256() for name in REQUEST_COLUMNS}
        self._segments = {name: hashlib.sha256() for name in SEGMENT_COLUMNS}

    def add_requests(self, columns: dict[str, Integers]) -> None:
        """Take a chunk of requests."""
        _update(self._requests, columns)

    def add_segments(self, columns: dict[str, Integers]) -> None:
        """Take a chunk of segments."""
        _update(self._segments, columns)

    def text(self) -> str:
        """The first digits of a SHA-256 over the hashes of all columns."""
        whole = hashlib.sha256()
        for hashers in (self._requests, self._segments):
            for name, hasher in hashers.items():
                whole.update(name.encode())
                whole.update(hasher.digest())
        return whole.hexdigest()[:DIGEST_DIGITS]


def _update(hashers: dict[str, _Hash], columns: dict[str, Integers]) -> None:
    for name, hasher in hashers.items():
        hasher.update(np.ascontiguousarray(columns[name], dtype="<i8").tobytes())
