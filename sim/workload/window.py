"""A workload cut at the start of a window: what was before it, and what arrives in it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import chain

from sim.workload.request import NO_BLOCKS, Request, Workload


class Window:
    """The requests of a workload before and in a window; read `before` to its end first.

    Instants are picoseconds of workload time; without a length the window goes to the end.
    """

    def __init__(self, workload: Workload, start_ps: int, length_ps: int | None) -> None:
        self.start_ps = start_ps
        self.end_ps = None if length_ps is None else start_ps + length_ps
        self._requests = iter(workload)
        self._first: Request | None = None
        self._made: list[Request] | None = None

    def before(self, since_ps: int) -> Iterator[Request]:
        """Requests that arrived before the window, but not before an instant."""
        for request in self._requests:
            if request.arrived_ps >= self.start_ps:
                self._first = request
                return
            if request.arrived_ps >= since_ps:
                yield placed(request, 0)

    def make_ahead(self) -> None:
        """Make all requests of the window now, and keep them."""
        self._made = list(self._of_window())

    def arrivals(self) -> Iterator[Request]:
        """Requests of the window, with the window's start as their zero."""
        return self._of_window() if self._made is None else iter(self._made)

    def _of_window(self) -> Iterator[Request]:
        first, self._first = self._first, None
        if first is None:
            return
        for request in chain((first,), self._requests):
            if self.end_ps is not None and request.arrived_ps >= self.end_ps:
                return
            yield placed(request, self.start_ps)


def placed(request: Request, zero_ps: int) -> Request:
    """A request in a time with another zero; its block ids, walked often, side by side in memory."""
    number, arrived_ps, input_tokens, output_tokens, blocks, *rest = request
    ids = array("q", blocks) if blocks else NO_BLOCKS
    return Request(number, arrived_ps - zero_ps, input_tokens, output_tokens, ids, *rest)
