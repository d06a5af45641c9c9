"""The screen of a run, line by line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import results_parts as parts
from test_figures import REJECTED, UNFINISHED, done, run_of

from sim.report.text import WIDTH, plain, screen, show
from sim.results.run import Run

HERE = Path(__file__).parent


def synthetic(n=2000, slo=("ttft p90 < 500 ms", "itl p99 <= 30 ms")):
    return Run.from_sink(parts.sink(n), parts.outcome(), parts.scenario(slo=list(slo)))


CASES = {
    "screen_missed": lambda: screen(synthetic().figures, "runs/chat-12-nodes-x"),
    "screen_no_slo": lambda: screen(synthetic(12_000, ()).figures),
    "screen_empty": lambda: screen(run_of([], ["ttft p90 < 500 ms"]).figures),
    "screen_unfinished": lambda: screen(
        run_of(
            [done(100, 1100)] * 8 + [UNFINISHED, REJECTED],
            ["ttft p90 < 500 ms", "e2e p50 < 2 s"],
            rejected_reasons={"too long": 1},
        ).figures
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_screen(name):
    lines = [plain(line) for line in CASES[name]()]
    assert lines == (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert max(len(line) for line in lines) <= WIDTH


def test_repr_is_the_verdict_and_the_table():
    assert repr(synthetic()).splitlines() == (HERE / "repr.txt").read_text(encoding="utf-8").splitlines()


def test_an_output_without_signs_gets_plain_ones():
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    show(screen(synthetic().figures), out)
    out.seek(0)
    text = out.read()
    assert "+ ttft p90" in text
    assert "x itl p99" in text
    assert "\x1b" not in text


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_colour_only_where_it_is_wanted(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, declined, dumb = Terminal(), Terminal(), Terminal()
    show(screen(synthetic(50).figures), coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    show(screen(synthetic(50).figures), declined)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    show(screen(synthetic(50).figures), dumb)
    assert "\x1b[" in coloured.getvalue()
    assert "\x1b[" not in declined.getvalue() + dumb.getvalue()
