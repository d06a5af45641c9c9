"""Named random streams: one independent generator for each purpose, all from one seed.

The stream of a purpose depends on the seed and the name alone: not on what else was drawn, in which
order, or in which process. So two topologies see the same requests. Asking twice for a purpose
gives the same numbers from the start again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Streams:
    """All streams of a seed."""

    seed: int

    def stream(self, purpose: str) -> np.random.Generator:
        """The generator for a purpose, such as `arrivals`, at its beginning."""
        digest = hashlib.blake2b(purpose.encode(), digest_size=16).digest()
        words = tuple(int.from_bytes(digest[at : at + 4], "little") for at in range(0, 16, 4))
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=words)))
