"""Generated workloads: an arrival process with independent prompt and output lengths, no prefix reuse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sim.base.units import show
from sim.workload.arrivals import arrival_chunks
from sim.workload.lengths import length_draw
from sim.workload.request import Request

if TYPE_CHECKING:
    from sim.base.streams import Streams
    from sim.config.scenario import Arrivals, Lengths


@dataclass(frozen=True)
class SyntheticWorkload:
    """Requests without end, up to `until_ps` or `limit`. Arrivals and lengths have streams of their own."""

    arrivals: Arrivals
    input: Lengths
    output: Lengths
    streams: Streams
    limit: int | None = None
    until_ps: int | None = None
    block_tokens: int = 512

    def __iter__(self) -> Iterator[Request]:
        return islice(self._requests(), self.limit)

    def _requests(self) -> Iterator[Request]:
        draw_input = length_draw(self.input, self.streams.stream("workload.input"))
        draw_output = length_draw(self.output, self.streams.stream("workload.output"))
        number = 0
        for chunk in arrival_chunks(self.arrivals, self.streams.stream("workload.arrivals")):
            lengths = zip(draw_input(len(chunk)).tolist(), draw_output(len(chunk)).tolist(), strict=True)
            for at_ps, (given, made) in zip(chunk.tolist(), lengths, strict=True):
                if self.until_ps is not None and at_ps >= self.until_ps:
                    return
                yield Request(number, at_ps, given, made)
                number += 1

    def describe(self) -> str:
        """Say in one line what is generated."""
        rate = show(self.arrivals.rate, "frequency")
        lengths = f"{self.input.kind} input and {self.output.kind} output lengths"
        return f"{self.arrivals.kind} arrivals at {rate}, {lengths}"
