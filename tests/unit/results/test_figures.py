"""The figures of a run against hand-made requests."""

from __future__ import annotations

import json

import numpy as np
import pytest
import results_parts as parts

from sim.results.run import Run
from sim.tables.metrics import LATENCIES, STATISTICS
from sim.tables.recorder import MemorySink
from sim.tables.schema import PHASES, REQUEST_COLUMNS, SEGMENT_COLUMNS, STATUSES

MS, S = parts.MS, parts.S


def run_of(requests, slo=(), segments=None, **outcome):
    """A run of hand-made requests: dicts of what differs from one that did nothing."""
    base = dict.fromkeys(REQUEST_COLUMNS, 0) | {"measured": 1}
    base |= dict.fromkeys(("first_token_ps", "second_token_ps", "finished_ps", "transfer_link"), -1)
    rows = [base | {"request_id": i} | request for i, request in enumerate(requests)]
    sink = MemorySink()
    if rows:
        sink.requests(
            {name: np.array([row[name] for row in rows], np.int64) for name in REQUEST_COLUMNS},
            [()] * len(rows),
        )
    if segments:
        sink.segments(
            {name: np.array([part[name] for part in segments], np.int64) for name in SEGMENT_COLUMNS}
        )
    outcome = {"window_ps": (0, 10 * S), "gpus": 4, "replicas": (), "links": ()} | outcome
    return Run.from_sink(sink, parts.outcome(**outcome), parts.scenario(slo=list(slo)))


def done(ttft_ms, e2e_ms, tokens=11, **more):
    """A finished request; its decode takes all of the time after the first token."""
    phases = {"phase_prefill_ps": ttft_ms * MS, "phase_decode_ps": (e2e_ms - ttft_ms) * MS}
    return {
        "output_tokens": tokens,
        "input_tokens": 100,
        "first_token_ps": ttft_ms * MS,
        "finished_ps": e2e_ms * MS,
        **phases,
        **more,
    }


UNFINISHED = {"status": STATUSES.index("unfinished"), "output_tokens": 11, "input_tokens": 100}
REJECTED = {"status": STATUSES.index("rejected"), "output_tokens": 11, "input_tokens": 100}


def test_latencies_are_numpys_quantiles_of_the_measured_requests():
    run = Run.from_sink(parts.sink(700), parts.outcome(), parts.scenario())
    for metric in ("ttft", "tpot", "e2e"):
        values = run.requests[f"{metric}_s"].dropna()
        assert run.figures[f"{metric}_s"]["p99"] == np.quantile(values, 0.99)
        assert run.figures[f"{metric}_s"]["mean"] == pytest.approx(values.mean(), rel=1e-12)
        assert run.figures[f"{metric}_s"]["samples"] == len(values)


def test_requests_outside_the_window_are_not_measured():
    figures = run_of([done(100, 1100), done(900, 9000, measured=0)]).figures
    assert figures["requests_measured"] == 1
    assert figures["ttft_s"]["max"] == 0.1


def test_rates_are_over_the_window_and_all_gpus():
    figures = run_of([done(100, 1100), done(100, 1100), UNFINISHED]).figures
    assert figures["offered_per_s"] == 0.3
    assert figures["goodput_per_s"] == 0.2
    assert figures["output_tokens_per_s_per_gpu"] == 22 / 10 / 4


def test_goodput_counts_requests_that_keep_every_limit_themselves():
    requests = [done(100, 1100), done(600, 1600), done(100, 9100), done(100, 100, tokens=1), UNFINISHED]
    figures = run_of(requests, ["ttft p90 < 500 ms", "tpot mean < 200 ms"]).figures
    assert figures["goodput_fraction"] == 2 / 5
    assert run_of(requests, ["ttft p90 < 600 ms"]).figures["goodput_fraction"] == 3 / 5
    assert run_of(requests, ["ttft p90 <= 600 ms"]).figures["goodput_fraction"] == 4 / 5
    assert run_of(requests, ["itl p50 < 200 ms"]).figures["goodput_fraction"] == 3 / 5


def test_a_request_that_never_came_misses_the_limit_but_not_the_table():
    run = run_of([done(100, 1100)] * 8 + [REJECTED] * 2, ["ttft p90 < 500 ms", "ttft p50 < 500 ms"])
    p90, p50 = run.figures["slo"]
    assert (p90["is_met"], p90["value_s"], p90["missing"]) == (False, None, 2)
    assert (p50["is_met"], p50["value_s"]) == (True, 0.1)
    assert run.figures["ttft_s"]["p90"] == 0.1
    assert run.is_slo_met is False


def test_an_unfinished_request_with_a_first_token_has_a_ttft():
    figures = run_of(
        [UNFINISHED | {"first_token_ps": 200 * MS}], ["ttft p50 < 500 ms", "e2e p50 < 5 s"]
    ).figures
    assert [entry["is_met"] for entry in figures["slo"]] == [True, False]


def test_one_token_requests_have_no_tpot_to_judge():
    run = run_of([done(100, 100, tokens=1)], ["tpot p90 < 50 ms"])
    assert run.figures["slo"][0]["is_met"] is None
    assert run.is_slo_met is None
    assert run.figures["goodput_fraction"] == 1.0


def test_gaps_that_never_came_count_for_itl():
    segment = dict.fromkeys(SEGMENT_COLUMNS, 0) | {
        "steps": 4,
        "first_step_ps": 10 * MS,
        "batch": 1,
        "measured": 1,
    }
    run = run_of([UNFINISHED], ["itl p50 < 20 ms", "itl p90 < 20 ms"], [segment])
    assert run.figures["itl_s"]["samples"] == 4
    assert [entry["missing"] for entry in run.figures["slo"]] == [6, 6]
    assert [entry["is_met"] for entry in run.figures["slo"]] == [False, False]


def test_phases_add_up_to_the_end_to_end():
    run = Run.from_sink(parts.sink(200), parts.outcome(), parts.scenario())
    assert set(run.figures["phases_s"]) == set(PHASES)
    assert sum(run.figures["phases_s"].values()) == pytest.approx(run.figures["e2e_s"]["mean"], rel=1e-12)


def test_utilisation_is_over_the_window():
    figures = Run.from_sink(parts.sink(10), parts.outcome(), parts.scenario()).figures
    prefill, decode = figures["pools"]
    assert prefill["utilisation"] == pytest.approx((40 + 54) / 2 / 60)
    assert (decode["replicas"], decode["gpus"]) == (4, 32)
    assert figures["links"][0]["utilisation"] == pytest.approx(9 * 2e11 / (5e10 * 60))


def test_an_empty_run_has_no_values_and_says_so():
    run = run_of([], ["ttft p90 < 500 ms"])
    assert all(run.figures[f"{metric}_s"][name] is None for metric in LATENCIES for name in STATISTICS)
    assert run.figures["goodput_fraction"] is None
    assert [advice.text for advice in run.warnings] == ["no request arrived in the measured window"]
    json.dumps(run.figures, allow_nan=False)


def test_figures_are_json_without_nan():
    run = run_of([REJECTED, UNFINISHED], ["ttft p90 < 500 ms"])
    assert json.loads(json.dumps(run.figures, allow_nan=False)) == run.figures


def test_summary_is_a_table_of_metrics_by_statistics():
    table = Run.from_sink(parts.sink(50), parts.outcome(), parts.scenario()).summary()
    assert list(table.index) == ["ttft_s", "tpot_s", "itl_s", "e2e_s"]
    assert list(table.columns) == list(STATISTICS)
