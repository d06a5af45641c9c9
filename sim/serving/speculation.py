"""Speculative decoding: how many tokens a step gives a sequence, and what such a step costs.

Model: before each step a draft (EAGLE or MTP heads, or a small model) guesses the next k tokens of each
sequence; the step computes them with the last token and keeps those up to the first wrong one, and one more,
which it gives itself. Draft token j is right with probability acceptance[j] if all before it were: so with
one probability p for all, a step gives (1 - p^(k+1)) / (1 - p) tokens on average. Lots follow from the seed,
the request and the number of its step alone: what else happens does not change them.
A step of B sequences costs what a decode step of B (k + 1) sequences does, except that the KV of each context
is read once, for all of its tokens; and k times a share of a plain step for the drafts.
Source: Leviathan, Kalman, Matias, *Fast Inference from Transformers via Speculative Decoding*, ICML 2023
(eq. 1); Li et al., *EAGLE*, ICML 2024.
Units: tokens, picoseconds.
Ignores: trees of drafts; that acceptance depends on the text; memory for the draft's own weights and KV;
prompts, which the draft has to read too; that what looks back at a window is counted for each draft token.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.network.hashed import mixed
from sim.timing.timing import DecodeTable, Timing

RANGE = 1 << 64


@dataclass(frozen=True, slots=True)
class Speculation:
    """`acceptance` of each draft token, once those before it are right; `draft_cost` is a share of a step."""

    acceptance: tuple[float, ...]
    draft_cost: float
    seed: int = 0

    @property
    def draft_tokens(self) -> int:
        """Tokens that are guessed in a step."""
        return len(self.acceptance)

    @property
    def mean_tokens(self) -> float:
        """Tokens that a step gives on average, where it is not the last one of a sequence."""
        mean = reached = 1.0
        for chance in self.acceptance:
            reached *= chance
            mean += reached
        return mean

    def course(self, request: int, first: int, tokens: int) -> list[int]:
        """Tokens that each step gives a request, from a step of it on, up to so many tokens in all."""
        limits, gains = self._limits(), list[int]()
        state = mixed(mixed(self.seed) ^ request)
        while tokens > 0:
            lot, gain = mixed(state ^ mixed(first + len(gains))), 1
            for limit in limits:
                if lot >= limit:
                    break
                gain += 1
            gains.append(min(gain, tokens))
            tokens -= gain
        return gains

    def drafts(self, timing: Timing, max_batch: int) -> DecodeTable:
        """What drafting takes before a step of 1 to `max_batch` sequences."""
        plain, share = timing.decode_table(max_batch), self.draft_cost * self.draft_tokens
        return DecodeTable(
            [round(share * base_ps) for base_ps in plain.base_ps],
            [round(share * token_ps) for token_ps in plain.per_token_ps],
        )

    def table(self, timing: Timing, max_batch: int) -> DecodeTable:
        """Steps of 1 to `max_batch` sequences, each with its drafts."""
        width, drafts = self.draft_tokens + 1, self.drafts(timing, max_batch)
        wide = timing.decode_table(max_batch * width)
        batches = range(1, max_batch + 1)
        return DecodeTable(
            [0, *[wide.base_ps[batch * width] + drafts.base_ps[batch] for batch in batches]],
            [0, *[wide.per_token_ps[batch] + drafts.per_token_ps[batch] for batch in batches]],
        )

    def _limits(self) -> list[int]:
        """A lot below the j-th limit says that the first j draft tokens are right."""
        reached, limits = 1.0, []
        for chance in self.acceptance:
            reached *= chance
            limits.append(int(reached * RANGE))
        return limits


class Calendar:
    """Tokens that all sequences of a replica get together in each step to come."""

    __slots__ = ("_gains",)

    def __init__(self) -> None:
        self._gains: dict[int, int] = {}

    def add(self, step: int, gains: list[int]) -> None:
        """A sequence gets these from a step on."""
        coming = self._gains
        for place, gain in enumerate(gains, step):
            coming[place] = coming.get(place, 0) + gain

    def cancel(self, step: int, gains: list[int]) -> None:
        """A sequence will not get these."""
        for place, gain in enumerate(gains, step):
            self._gains[place] -= gain

    def lengths_ps(self, step: int, steps: int, table: DecodeTable, held: tuple[int, int]) -> list[int]:
        """How long steps last of `held` sequences and tokens of context, which grow."""
        batch, context = held
        base_ps, token_ps = table.base_ps[batch], table.per_token_ps[batch]
        lengths = []
        for place in range(step, step + steps):
            lengths.append(base_ps + token_ps * context)
            context += self._gains.get(place, 0)
        return lengths

    def pass_by(self, step: int, steps: int) -> int:
        """Forget steps that are over; the tokens of all of them."""
        return sum(self._gains.pop(place, 0) for place in range(step, step + steps))
