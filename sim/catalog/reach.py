"""How far back a token looks: at everything before it, at a sliding window, or at its own chunk.

A window of W takes the token itself and the W - 1 before it; with chunks of C, token p (from 0) looks back to
the first token of its chunk, p - p mod C. Counts are exact. Ignores: attention sinks, whose few keys are
always in reach.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """At most one of `window` and `chunk`, in tokens; neither is full attention."""

    window: int | None = None
    chunk: int | None = None

    @property
    def label(self) -> str:
        """The reach for people."""
        if self.window is not None:
            return f"window of {self.window}"
        return f"chunk of {self.chunk}" if self.chunk is not None else "full"

    @property
    def limit(self) -> int | None:
        """The most tokens whose KV is ever looked at; None for all."""
        return self.window if self.window is not None else self.chunk

    def held(self, tokens: int) -> int:
        """Of a sequence of so many tokens, those whose KV must be kept."""
        return tokens if self.limit is None else min(tokens, self.limit)

    def seen(self, tokens: int) -> int:
        """Keys that the last of so many tokens looks at, itself included."""
        if self.chunk is not None and tokens:
            return (tokens - 1) % self.chunk + 1
        return self.held(tokens)

    def doubled_pairs(self, new: int, cached: int) -> int:
        """Twice the pairs of query and key when `new` tokens follow `cached` ones; doubled to stay whole."""
        if self.window is not None:
            growing = min(new, max(0, self.window - cached))
            return growing * (2 * cached + growing + 1) + 2 * (new - growing) * self.window
        if self.chunk is not None:
            return _doubled_in_chunks(new + cached, self.chunk) - _doubled_in_chunks(cached, self.chunk)
        return new * (2 * cached + new + 1)

    def touched(self, new: int, cached: int) -> int:
        """Tokens whose KV is read when `new` tokens follow `cached` ones."""
        if self.window is not None:
            return new + min(cached, self.window - 1)
        return new + (cached if self.chunk is None else cached % self.chunk)


FULL = Reach()


def _doubled_in_chunks(tokens: int, chunk: int) -> int:
    """Twice the pairs of a sequence that starts with a chunk."""
    whole, rest = divmod(tokens, chunk)
    return whole * chunk * (chunk + 1) + rest * (rest + 1)
