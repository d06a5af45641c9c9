"""What a transfer is made of: so many bytes on a way, where each part is a flow or several queue pairs.

Model: `split` queue pairs carry equal shares, each as a flow of its own; `pooled` ones all take from what is
left of their part, so that each works until the last byte is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sim.network.path import Path


class Pooled(NamedTuple):
    """The ways of queue pairs that take their bytes from one pool."""

    paths: tuple[Path, ...]

    @property
    def latency_ps(self) -> int:
        """What passes before the first byte on the slowest way."""
        return max(path.latency_ps for path in self.paths)

    def of_a_flow(self) -> Pooled:
        """The ways of one transfer: each queue pair has its own cap."""
        return Pooled(tuple(path.of_a_flow() for path in self.paths))


Part = tuple[int, Path | Pooled]
"""Bytes, and the way or ways that they take."""


def dealt(size: int, paths: Sequence[Path], is_pooled: bool) -> list[Part]:
    """The parts of so many bytes over queue pairs, each of which has its path."""
    if is_pooled and len(paths) > 1:
        return [(size, Pooled(tuple(paths)))]
    each, rest = divmod(size, len(paths))
    return [(each + (pair < rest), path) for pair, path in enumerate(paths)]
