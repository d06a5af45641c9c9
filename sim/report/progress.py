"""Progress while a simulation runs, on stderr: a live line on a terminal, else a plain line now and then.

The engine reports about twice a second of CPU time: the simulated instant, requests done, running and
waiting, and events so far. The instant counts from the start of the window. Time left assumes that the rest
of the window costs what it has cost since the first report: filling caches comes before.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TextIO

from sim.report.signs import can_encode, plainly, wants_colour
from sim.report.text import WIDTH
from sim.results.words import count_short, whole
from sim.tables.schema import PS_PER_S

if TYPE_CHECKING:
    from rich.live import Live

PLAIN_EVERY_S = 5.0
BAR_CELLS = 12
PREPARING = "preparing: building the cluster, filling caches"


@dataclass(frozen=True, slots=True)
class State:
    """What the engine said last."""

    now_ps: int
    done: int
    running: int
    waiting: int
    events: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The first report: when it came, and how far the simulation was."""

    at_s: float
    state: State

    def pace(self, at_s: float, state: State) -> Pace:
        """What has happened since."""
        return Pace(at_s - self.at_s, state.now_ps - self.state.now_ps, state.events - self.state.events)


@dataclass(frozen=True, slots=True)
class Pace:
    """So many picoseconds and events were simulated in so many seconds."""

    spent_s: float = 0.0
    simulated_ps: int = 0
    events: int = 0


@dataclass
class ProgressLine:
    """Shows progress on a stream: live where it is a terminal, else a line every few seconds.

    `window_ps` is how long requests arrive; None where nobody knows.
    """

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    window_ps: int | None = None
    _shown_s: float = 0.0
    _since: Mark | None = None
    _live: Live | None = None

    def __enter__(self) -> Self:
        """Start the clock, and the live line on a terminal."""
        self._shown_s = time.monotonic()
        if wants_colour(self.stream):
            self._live = _live_line(self.stream)
            self._live.start()
            self._live.update(self._encodable(PREPARING), refresh=True)
        return self

    def __exit__(self, *failure: object) -> None:
        """Remove the live line."""
        if self._live is not None:
            self._live.stop()

    def update(self, now_ps: int, done: int, running: int, waiting: int, events: int) -> None:
        """Show how far it has come."""
        now_s, state = time.monotonic(), State(now_ps, done, running, waiting, events)
        self._since = self._since or Mark(now_s, state)
        if self._live is None and now_s - self._shown_s < PLAIN_EVERY_S:
            return
        self._shown_s = now_s
        width = WIDTH if self._live is None else self._live.console.width - 1
        pace = self._since.pace(now_s, state)
        text = self._encodable(progress_text(state, self.window_ps, pace, width))
        if self._live is None:
            print(text, file=self.stream, flush=True)
        else:
            self._live.update(text, refresh=True)

    def _encodable(self, text: str) -> str:
        return text if can_encode(self.stream) else plainly(text)


def progress_text(state: State, window_ps: int | None, pace: Pace, width: int) -> str:
    """One line of progress: the clock, requests, events a second and the time left, as far as they fit."""
    speed = f"{count_short(pace.events / pace.spent_s)} events/s" if pace.spent_s > 0 else ""
    requests = f"{whole(state.done)} done, {whole(state.running)} running, {whole(state.waiting)} waiting"
    if window_ps is None:
        return _fitting(width, f"simulating {clock(state.now_ps / PS_PER_S)}", requests, speed)
    if state.now_ps >= window_ps:
        past = clock((state.now_ps - window_ps) / PS_PER_S)
        return _fitting(width, f"draining, {past} past the window", requests, speed)
    part = state.now_ps / window_ps
    left_ps = window_ps - state.now_ps
    left = f"{clock(pace.spent_s * left_ps / pace.simulated_ps)} left" if pace.simulated_ps > 0 else ""
    place = f"{_bar(part)} {part:4.0%} of {clock(window_ps / PS_PER_S)}"
    return _fitting(width, place, requests, left, speed)


def _fitting(width: int, *parts: str) -> str:
    """Parts in a line, the last ones left away where it would be too long."""
    shown = [part for part in parts if part]
    while len(shown) > 1 and len("  ".join(shown)) > width:
        shown.pop()
    return "  ".join(shown)


def clock(span_s: float) -> str:
    """A span as a clock shows it: 1:05, or 2:01:05."""
    minutes, rest = divmod(round(span_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bar(part: float) -> str:
    full = round(part * BAR_CELLS)
    return "█" * full + "░" * (BAR_CELLS - full)


def _live_line(stream: TextIO) -> Live:
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.live import Live  # noqa: PLC0415

    return Live(console=Console(file=stream, highlight=False), transient=True, auto_refresh=False)
