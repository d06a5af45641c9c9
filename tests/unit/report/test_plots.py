"""Pictures draw what the tables say, and come out as pictures."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest
import results_parts as parts

from sim.report.plots import cdf, curve, save_cdf, share_within, short
from sim.results.run import Run
from sim.tables.metrics import LATENCIES

SLO = ["ttft p90 < 500 ms", "itl p99 <= 30 ms", "e2e p99 < 30 s"]


@pytest.fixture(scope="module")
def run():
    return Run.from_sink(parts.sink(900), parts.outcome(), parts.scenario(slo=SLO))


def test_the_picture_is_a_png_of_the_expected_size(run, tmp_path):
    save_cdf(run, tmp_path / "cdf.png")
    head = (tmp_path / "cdf.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:24]) == (1500, 1050)


@pytest.mark.parametrize("metric", LATENCIES)
def test_curves_go_through_the_numbers_of_the_table(run, metric):
    points = dict(zip(curve(run, metric).fraction, curve(run, metric).value_s, strict=True))
    for name, fraction in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)):
        assert points[fraction] == run.figures[f"{metric}_s"][name]


def test_what_is_drawn_is_the_curve(run):
    axes = cdf(run).axes
    assert len(axes) == 4
    for ax, metric in zip(axes, LATENCIES, strict=True):
        drawn = ax.lines[0]
        assert tuple(drawn.get_xdata()) == curve(run, metric).value_s
        assert tuple(drawn.get_ydata()) == tuple(100 * part for part in curve(run, metric).fraction)
        assert ax.get_xscale() == "log"
        assert ax.get_ylabel().startswith("% of ")


def test_a_limit_is_a_line_with_the_share_that_keeps_it(run):
    ttft = cdf(run).axes[0]
    limit = next(line for line in ttft.lines if line.get_linestyle() == "--")
    assert list(limit.get_xdata()) == [0.5, 0.5]
    share = (run.requests["ttft_s"] < 0.5).mean()
    entry = run.figures["slo"][0]
    assert share_within(run, entry, curve(run, "ttft")) == pytest.approx(share, abs=0.003)
    assert any("within 500 ms" in text.get_text() for text in ttft.texts)


def test_the_caption_says_what_it_is(run):
    words = " ".join(text.get_text() for text in cdf(run).texts)
    assert "900 requests measured" in words
    assert "seed 1" in words
    assert run.digest in words


def test_a_run_without_requests_is_drawn_as_well(tmp_path):
    empty = Run.from_sink(parts.MemorySink(), parts.outcome(), parts.scenario(slo=SLO))
    save_cdf(empty, tmp_path / "cdf.png")
    assert all(any("nothing" in text.get_text() for text in ax.texts) for ax in cdf(empty).axes)


def test_drawing_leaves_no_global_state(run):
    cdf(run)
    assert "matplotlib.pyplot" not in sys.modules


def test_several_runs_are_several_curves(run):
    other = Run.from_sink(parts.sink(100), parts.outcome(), parts.scenario())
    colours = {line.get_color() for line in cdf([run, other]).axes[1].lines}
    assert len(colours) == 2


@pytest.mark.parametrize(
    ("value_s", "text"), [(2e-5, "20 µs"), (0.02, "20 ms"), (1.5, "1.5 s"), (5000.0, "5 000 s")]
)
def test_times_on_axes(value_s, text):
    assert short(value_s) == text


def test_times_on_axes_are_not_split_by_rounding():
    assert short(float(np.float64(10) ** -3)) == "1 ms"
