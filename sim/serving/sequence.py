"""A request in a colocated replica: what of it is computed, what it holds, and how far its output is."""

from __future__ import annotations

from collections.abc import Sequence as Items

from sim.kvpool.cache import Lease
from sim.serving.job import Job
from sim.serving.order import Key
from sim.tables.schema import NOT_YET


class Sequence:
    """A request that waits in a replica, is being computed, or decodes.

    `blocks` are the full blocks of its prompt that may be shared. `left` tokens are to be computed of its
    prompt, and of what it had put out before it was put aside. `tokens` had come when it joined the decode
    batch, at step `joined_at` of the replica. `lease` and `pages` are what it holds, `kept_pages` what it has
    in host memory while it is put aside.
    """

    __slots__ = (
        "blocks",
        "job",
        "joined_at",
        "kept_pages",
        "key",
        "last_token_ps",
        "lease",
        "left",
        "pages",
        "tokens",
    )

    def __init__(self, job: Job, key: Key, blocks: Items[int]) -> None:
        self.job = job
        self.key = key
        self.blocks = blocks
        self.left = 0
        self.tokens = 0
        self.joined_at = 0
        self.pages = 0
        self.kept_pages = 0
        self.lease: Lease | None = None
        self.last_token_ps = NOT_YET

    @property
    def total(self) -> int:
        """Tokens that are to be computed before its next one comes, cached ones included."""
        return self.job.request.input_tokens + self.tokens

    def context(self, step: int) -> int:
        """Tokens that a decode step looks back at."""
        return self.total + step - self.joined_at

    def gained(self, step: int) -> int:
        """Tokens that have come since it joined the decode batch."""
        return step - self.joined_at

    def reach(self, step: int) -> int:
        """Tokens for which a decode step needs pages."""
        return self.context(step)

    def note_start(self, new: int, now_ps: int) -> None:
        """It is let in, with so many tokens to compute."""
        job = self.job
        if job.prefill_ps == NOT_YET:
            job.prefill_ps = now_ps
            job.cached_tokens = job.hbm_tokens = self.total - new
        elif job.computed_ps == NOT_YET:
            job.bring_back(now_ps)

    def __lt__(self, other: Sequence) -> bool:
        return self.key < other.key


Chunks = list[tuple[Sequence, int]]
"""Sequences whose prompts a step computes, and how many tokens of each."""
