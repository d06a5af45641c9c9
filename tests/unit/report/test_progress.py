"""The progress line, and how it behaves where nobody looks."""

from __future__ import annotations

import io

import pytest

from sim.report import progress
from sim.report.progress import Pace, ProgressLine, State, clock, progress_text

S = 10**12
STATE = State(34 * S, 10_095, 1_373, 12, 210_000)
PACE = Pace(3.2, 34 * S, 210_000)


@pytest.mark.parametrize(
    ("window_ps", "width", "text"),
    [
        (
            60 * S,
            120,
            "███████░░░░░  57% of 1:00  10 095 done, 1 373 running, 12 waiting  0:02 left  65 625 events/s",
        ),
        (60 * S, 80, "███████░░░░░  57% of 1:00  10 095 done, 1 373 running, 12 waiting  0:02 left"),
        (30 * S, 80, "draining, 0:04 past the window  10 095 done, 1 373 running, 12 waiting"),
        (None, 80, "simulating 0:34  10 095 done, 1 373 running, 12 waiting  65 625 events/s"),
    ],
)
def test_one_line(window_ps, width, text):
    assert progress_text(STATE, window_ps, PACE, width) == text
    assert len(text) <= width


def test_at_the_very_start_no_time_left_is_guessed():
    assert "left" not in progress_text(State(0, 0, 0, 0, 0), 60 * S, Pace(), 80)


@pytest.mark.parametrize(("span_s", "text"), [(0, "0:00"), (65, "1:05"), (7265, "2:01:05")])
def test_clock(span_s, text):
    assert clock(span_s) == text


def test_plain_lines_come_every_few_seconds(monkeypatch):
    now = iter([0.0, 4.0, 5.0, 6.0, 10.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    out = io.StringIO()
    with ProgressLine(out, 60 * S) as line:
        for i in range(4):
            line.update(i * 10 * S, i, 0, 0, i)
    assert out.getvalue().splitlines() == [
        "██░░░░░░░░░░  17% of 1:00  1 done, 0 running, 0 waiting  0:05 left  1 events/s",
        "██████░░░░░░  50% of 1:00  3 done, 0 running, 0 waiting  0:06 left  0 events/s",
    ]


def test_time_left_does_not_count_what_came_before_the_first_report(monkeypatch):
    """A minute of filling caches, then 10 s of the window in each second."""
    now = iter([0.0, 60.0, 61.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    out = io.StringIO()
    with ProgressLine(out, 60 * S) as line:
        line.update(10 * S, 0, 0, 0, 0)
        monkeypatch.setattr(progress, "PLAIN_EVERY_S", 0.0)
        line.update(20 * S, 0, 0, 0, 0)
    assert "0:04 left" in out.getvalue().splitlines()[-1]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_is_told_that_caches_are_filled_first(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    with ProgressLine(out, 60 * S):
        assert "preparing" in out.getvalue()
