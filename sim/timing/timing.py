"""What the serving engine asks of a timing provider. Times are integer picoseconds.

A prefill batch is asked for whole. Decode steps are asked for once, as a table linear in the tokens of
context, so that the engine can take many steps in closed form and stay exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Chunk = tuple[int, int]
"""One prompt of a prefill batch: tokens to compute, and tokens whose KV is already there."""


@dataclass(frozen=True, slots=True)
class DecodeTable:
    """Decode steps by batch size: index b is a step of b sequences, index 0 is unused and 0.

    A step of b sequences with c tokens of context in all lasts base_ps[b] + per_token_ps[b] * c.
    """

    base_ps: list[int]
    per_token_ps: list[int]

    def after(self, host_ps: int) -> DecodeTable:
        """The same steps, each after something that the host does."""
        if not host_ps:
            return self
        return DecodeTable([0, *(base + host_ps for base in self.base_ps[1:])], self.per_token_ps)

    def step_ps(self, batch: int, context_tokens: int) -> int:
        """Duration of one step."""
        return self.base_ps[batch] + self.per_token_ps[batch] * context_tokens


class Timing(Protocol):
    """A provider of times for one replica."""

    def prefill_ps(self, chunks: Sequence[Chunk]) -> int:
        """Duration of one prefill batch."""
        ...

    def mixed_ps(self, chunks: Sequence[Chunk], batch: int, context_tokens: int) -> int:
        """Duration of one step that computes chunks of prompts and decodes `batch` sequences beside them."""
        ...

    def decode_table(self, max_batch: int) -> DecodeTable:
        """Durations of decode steps of 1 to `max_batch` sequences."""
        ...
