"""Decode steps that follow one another with the same sequences, and the rows that they leave.

Model: the first step lasts `first_ps`, each next one `growth_ps` more. A row gives every sequence of it one
gap for each step, so what differs gets a row of its own: the first step where tokens had stood still before
it (prompts were computed, the host was busy), and whoever comes back with tokens of its own.
Units: picoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sim.serving.steps import length_ps, steps_until

Row = tuple[int, ...]


@dataclass(slots=True)
class Segment:
    """Steps under way, from `began_ps` on.

    `newcomers` take part for the first time; `joined` measured ones of them have their gap with the request;
    `late_ps` are the last tokens of measured ones that had more before.
    """

    began_ps: int
    steps: int
    first_ps: int
    growth_ps: int
    newcomers: int = 0
    joined: int = 0
    late_ps: tuple[int, ...] = ()

    @property
    def ends_ps(self) -> int:
        """When the last step ends."""
        return self.began_ps + length_ps(self.steps, self.first_ps, self.growth_ps)

    def cut(self, now_ps: int) -> bool:
        """End with the step under way, or with one that ends just now; whether that is sooner."""
        steps = steps_until(now_ps - self.began_ps, self.first_ps, self.growth_ps)
        is_sooner = steps < self.steps
        self.steps = min(steps, self.steps)
        return is_sooner

    def rows(self, replica: int, batch: int, measured: int, token_ps: int) -> Iterator[Row]:
        """The rows of tables.SEGMENT_COLUMNS; whoever was there before had its last token at `token_ps`."""
        began, steps, first, growth = self.began_ps, self.steps, self.first_ps, self.growth_ps
        stood_ps = began - token_ps if batch > self.newcomers else 0
        if not stood_ps and not self.late_ps:
            yield replica, began, steps, first, growth, batch, measured, self.joined
            return
        on_time = measured - len(self.late_ps)
        yield replica, began - stood_ps, 1, first + stood_ps, 0, batch, on_time, self.joined
        if steps > 1:
            yield replica, began + first, steps - 1, first + growth, growth, batch, measured, 0
        for last_ps in self.late_ps:
            yield gap_row(replica, last_ps, began + first)


def gap_row(replica: int, from_ps: int, to_ps: int) -> Row:
    """One gap of one measured sequence."""
    return replica, from_ps, 1, to_ps - from_ps, 0, 1, 1, 0
