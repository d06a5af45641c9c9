"""A workload cut at the start of a window: what was before it, and what arrives in it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sim.workload.request import Request, Workload


class Window:
    """The requests of a workload before and in a window; read `before` to its end first.

    Instants are picoseconds of workload time; without a length the window goes to the end.
    """

    def __init__(self, workload: Workload, start_ps: int, length_ps: int | None) -> None:
        self.start_ps = start_ps
        self.end_ps = None if length_ps is None else start_ps + length_ps
        self._requests = iter(workload)
        self._first: Request | None = None

    def before(self, since_ps: int) -> Iterator[Request]:
        """Requests that arrived before the window, but not before an instant."""
        for request in self._requests:
            if request.arrived_ps >= self.start_ps:
                self._first = request
                return
            if request.arrived_ps >= since_ps:
                yield request

    def make_ahead(self) -> None:
        """Make all requests of the window now, and keep them."""
        self._requests = iter(list(self._until_end()))

    def arrivals(self) -> Iterator[Request]:
        """Requests of the window, with the window's start as their zero."""
        first, self._first = self._first, None
        if first is None:
            return
        start_ps = self.start_ps
        for request in chain((first,), self._until_end()):
            if start_ps:
                number, arrived_ps, input_tokens, output_tokens, blocks = request
                yield Request(number, arrived_ps - start_ps, input_tokens, output_tokens, blocks)
            else:
                yield request

    def _until_end(self) -> Iterator[Request]:
        for request in self._requests:
            if self.end_ps is not None and request.arrived_ps >= self.end_ps:
                return
            yield request
