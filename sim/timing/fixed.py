"""A replica described by five numbers, for queueing theory and for tests of the engine.

Model: prefill = base + per_token x new tokens; a decode step = base + per_sequence x sequences + per_token x
tokens of context; a mixed one is a prefill with the sequences and the context of a decode step.
Ignores: everything else; cached tokens cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.timing.timing import Chunk, DecodeTable


@dataclass(frozen=True, slots=True)
class FixedTiming:
    """Times that are linear by definition, in integer picoseconds."""

    prefill_base_ps: int = 0
    prefill_per_token_ps: int = 0
    decode_base_ps: int = 0
    decode_per_sequence_ps: int = 0
    decode_per_token_ps: int = 0

    def prefill_ps(self, chunks: Sequence[Chunk]) -> int:
        """Duration of one prefill batch."""
        return self.prefill_base_ps + self.prefill_per_token_ps * sum(new for new, _ in chunks)

    def mixed_ps(self, chunks: Sequence[Chunk], batch: int, context_tokens: int) -> int:
        """Duration of one step with chunks of prompts and `batch` sequences."""
        decoded = self.decode_per_sequence_ps * batch + self.decode_per_token_ps * context_tokens
        return self.prefill_ps(chunks) + decoded

    def decode_table(self, max_batch: int) -> DecodeTable:
        """Durations of decode steps of 1 to `max_batch` sequences."""
        base = [
            self.decode_base_ps + self.decode_per_sequence_ps * batch for batch in range(1, max_batch + 1)
        ]
        return DecodeTable([0, *base], [0, *[self.decode_per_token_ps] * max_batch])
