"""One request as the user sends it: when, how many tokens, and which KV blocks its prompt hashes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

NO_BLOCKS: tuple[int, ...] = ()
NO_SESSION = -1
NEVER = -1

Arrival = tuple[int, int, int, Sequence[int]]
"""A request before it has its number: arrived_ps, input_tokens, output_tokens, blocks."""


class Request(NamedTuple):
    """A request of a trace or a generator.

    `arrived_ps` counts picoseconds from the start of the workload. `blocks` holds one id for each
    started block of the prompt, chained: an equal id means an equal block after an equal prefix.
    It is empty where nothing is known about reuse. The last block may be partial. Requests of one `session`
    follow one another (NO_SESSION: nothing is known of it). A lower `priority` is more urgent. The user takes
    it back `cancelled_after_ps` after it arrived, unless it is done by then (NEVER: does not).
    """

    id: int
    arrived_ps: int
    input_tokens: int
    output_tokens: int
    blocks: Sequence[int] = NO_BLOCKS
    session: int = NO_SESSION
    priority: int = 0
    cancelled_after_ps: int = NEVER


class Nobody:
    """A workload without requests: all of them come from users who wait for answers."""

    block_tokens = 0

    def __iter__(self) -> Iterator[Request]:
        return iter(())

    def describe(self) -> str:
        """Say in one line what the workload is."""
        return "no requests of their own"


class Workload(Protocol):
    """Requests in order of arrival; ids count from 0; iterating again gives the same requests."""

    @property
    def block_tokens(self) -> int:
        """Tokens of one hashed block."""
        ...

    def __iter__(self) -> Iterator[Request]:
        """Yield the requests lazily: a workload may be larger than memory."""
        ...

    def describe(self) -> str:
        """Say in one line what the workload is."""
        ...
