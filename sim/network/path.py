"""The way of a transfer: the links that can hold it back, all that its bytes cross, and what caps it.

Model: a cap is a rate that each flow has for itself, whatever others do: that of a queue pair, or of a copy
engine. To the solver it is one more link, which no other flow is on.
Units: bytes per picosecond.
"""

from __future__ import annotations

from typing import NamedTuple

from sim.network.maxmin import Link


class Cap(NamedTuple):
    """The most that a flow gets; `id` is the number of what caps it among the described links."""

    id: int
    rate: float


class Path(NamedTuple):
    """The way from one place to another.

    `links` can hold a flow back, `counted` are the ids of all links it crosses, `latency_ps` passes before
    the first byte. With a `cap` each flow on this path is held back by one of its own.
    """

    links: tuple[Link, ...]
    counted: tuple[int, ...]
    latency_ps: int
    cap: Cap | None = None

    def held_by(self, link: Link) -> Path:
        """The same way for one flow, with a link of its own that holds it back."""
        return Path((*self.links, link), self.counted, self.latency_ps, self.cap)

    def then(self, other: Path) -> Path:
        """Give the way that goes on with another one, in one go."""
        return Path(
            (*self.links, *other.links),
            (*self.counted, *other.counted),
            self.latency_ps + other.latency_ps,
            tightest(self.cap, other.cap),
        )

    def of_a_flow(self) -> Path:
        """The path of one flow: its cap is a link that nobody else can be on."""
        if self.cap is None:
            return self
        return self._replace(links=(Link(self.cap.id, self.cap.rate), *self.links), cap=None)


def tightest(*caps: Cap | None) -> Cap | None:
    """The lowest of some caps; None where there is none."""
    return min((cap for cap in caps if cap is not None), key=lambda cap: cap.rate, default=None)
