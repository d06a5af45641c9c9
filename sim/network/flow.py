"""One flow: bytes on their way over one path, or over those of several queue pairs that share what is left.

Model: a pooled flow has one number of bytes left and one end. Each of its queue pairs draws from it at a rate
of its own, and the flow's rate is the sum; so all of them work until the last byte is sent.
Units: bytes, picoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.clock import Clock, Moment
from sim.network.maxmin import Link, Rated
from sim.network.path import Path


class Transfer(Moment):
    """Flows that belong together: happens when the last byte of the last one is there."""

    def __init__(self, clock: Clock, flows: int) -> None:
        super().__init__(clock)
        self.flows = flows


class Pace(Link):
    """A link of one flow alone, which holds it back to the rate at which its bytes come to be.

    It is lifted when they all are; until then the flow cannot have ended. `alone` is the rate that the flow
    has afterwards where nobody else is there; 0 where that is just what its links have.
    """

    __slots__ = ("alone",)

    def __init__(self, id: int, capacity: float) -> None:
        super().__init__(id, capacity)
        self.alone = 0.0


class Flow(Rated):
    """Bytes on their way; `end` is the event of their end, which moves when the rate changes.

    `links` are those that can hold it back, `counted` the ids of all links its bytes cross; `left` is what
    had not moved at `updated_ps`, `booked` what the counters of the links know of. `alone` is its rate when
    nobody else is there, `holder` the link that has held it back since `updated_ps`, `waited` the
    picoseconds that each link has cost it. A pooled flow has `draws` in place of links. As long
    as there are `paces`, its bytes are still being made, and its end is not known.
    """

    __slots__ = (
        "alone",
        "booked",
        "counted",
        "draws",
        "end",
        "holder",
        "id",
        "left",
        "paces",
        "size",
        "transfer",
        "updated_ps",
        "waited",
    )

    def __init__(self, id: int, size: int, path: Path, transfer: Transfer | None, now_ps: int) -> None:
        self.links = path.links
        self.rate = 0.0
        self.bottleneck = None
        self.id = id
        self.size = size
        self.counted = path.counted
        self.transfer = transfer
        self.left = float(size)
        self.booked = 0.0
        self.updated_ps = now_ps
        self.end: Moment | None = None
        self.alone = 0.0
        self.holder: Link | None = None
        self.waited: dict[int, float] | None = None
        self.draws: tuple[Draw, ...] = ()
        self.paces = 0

    def gather(self, now_ps: int) -> float:
        """Work out what each queue pair has moved, and take the sum of their new rates; the rate before."""
        before = self.rate
        for draw in self.draws:
            draw.moved += draw.was * (now_ps - self.updated_ps)
        self.rate = sum([draw.rate for draw in self.draws])
        return before

    def turn(self) -> None:
        """Begin a stretch of time in which each queue pair has the rate and the bottleneck of now."""
        for draw in self.draws:
            draw.was, draw.holder = draw.rate, draw.bottleneck
        self.holder = max(self.draws, key=lambda draw: draw.rate).bottleneck

    def blame(self) -> list[tuple[int, float]]:
        """The links that made it slower (or faster) than alone since its last change, each with its part."""
        sign = 1.0 if sum([draw.was for draw in self.draws]) < self.alone else -1.0
        gaps = [max((draw.alone - draw.was) * sign, 0.0) for draw in self.draws]
        whole = sum(gaps)
        return [
            (draw.holder.id, gap / whole)
            for draw, gap in zip(self.draws, gaps, strict=True)
            if gap and draw.holder is not None
        ]


class Draw(Rated):
    """One queue pair of a pooled flow: `moved` it had at the flow's last change, at the rate `was` since.

    `holder` has held it back since then; `alone` is its rate when nobody else is there.
    """

    __slots__ = ("alone", "booked", "counted", "flow", "holder", "moved", "was")

    def __init__(self, flow: Flow, path: Path, alone: float) -> None:
        super().__init__(path.links)
        self.flow = flow
        self.counted = path.counted
        self.alone = alone
        self.holder: Link | None = None
        self.was = 0.0
        self.moved = 0.0
        self.booked = 0.0

    def moved_by(self, now_ps: int) -> float:
        """Bytes so far; of the last picosecond only what was left for it."""
        flow = self.flow
        if not flow.rate:
            return self.moved
        return self.moved + self.was * min(now_ps - flow.updated_ps, flow.left / flow.rate)


def pooled(id: int, size: int, ways: Sequence[tuple[Path, float]], now_ps: int) -> Flow:
    """A flow whose queue pairs each have a path, and a rate when nobody else is there."""
    flow = Flow(id, size, Path((), (), 0), None, now_ps)
    flow.draws = tuple([Draw(flow, path, alone) for path, alone in ways])
    flow.alone = sum([alone for _, alone in ways])
    return flow
