"""Recorded integers become public columns in one place."""

from __future__ import annotations

import numpy as np
import results_parts as parts

from sim.tables.derive import PUBLIC_COLUMNS, public_requests, spans
from sim.tables.schema import PHASES, REQUEST_COLUMNS, STATUSES

MS = parts.MS


def row(**values):
    """One request as the Recorder keeps it: nothing has happened unless said."""
    base = dict.fromkeys(REQUEST_COLUMNS, 0)
    base |= dict.fromkeys(
        ("first_token_ps", "second_token_ps", "finished_ps", "prefill_replica", "decode_replica"), -1
    )
    return {name: np.array([(base | values)[name]], dtype=np.int64) for name in REQUEST_COLUMNS}


FINISHED = {
    "request_id": 7,
    "measured": 1,
    "arrived_ps": 100 * MS,
    "output_tokens": 5,
    "first_token_ps": 150 * MS,
    "second_token_ps": 180 * MS,
    "finished_ps": 270 * MS,
    "prefill_replica": 3,
    "decode_replica": 4,
    "phase_queue_ps": 20 * MS,
    "phase_prefill_ps": 30 * MS,
    "phase_decode_ps": 120 * MS,
}


def public(**values):
    return {name: column[0] for name, column in public_requests(row(**values)).items()}


def test_a_finished_request():
    found = public(**FINISHED)
    assert tuple(found) == PUBLIC_COLUMNS
    assert found["arrived_at_s"] == 0.1
    assert found["ttft_s"] == 0.05
    assert found["tpot_s"] == 0.03
    assert found["e2e_s"] == 0.17
    assert found["finished_at_s"] == 0.27
    assert found["first_gap_s"] == 0.03
    assert found["e2e_ps"] == 170 * MS
    assert found["phase_queue_s"] == 0.02
    assert found["measured"]


def test_one_token_has_no_time_per_output_token():
    found = public(**FINISHED | {"output_tokens": 1, "second_token_ps": -1, "finished_ps": 150 * MS})
    assert np.isnan(found["tpot_s"])
    assert np.isnan(found["first_gap_s"])
    assert found["e2e_s"] == found["ttft_s"] == 0.05


def test_an_unfinished_request_keeps_its_first_token_and_has_no_end():
    found = public(**FINISHED | {"status": STATUSES.index("unfinished"), "finished_ps": -1})
    assert found["ttft_s"] == 0.05
    assert np.isnan([found["tpot_s"], found["e2e_s"], found["finished_at_s"]]).all()
    assert found["e2e_ps"] == -1


def test_a_rejected_request_has_no_latency_even_where_its_end_is_noted():
    found = public(request_id=1, status=STATUSES.index("rejected"), finished_ps=5, output_tokens=9)
    assert np.isnan([found["ttft_s"], found["tpot_s"], found["e2e_s"], found["finished_at_s"]]).all()


def test_spans_lie_one_after_the_other_from_the_arrival():
    found = spans(row(**FINISHED))
    names = [list(PHASES)[i] for i in found["phase"]]
    rows = list(zip(names, found["started_at_ps"], found["duration_ps"], found["replica"], strict=True))
    assert rows == [
        ("queue", 100 * MS, 20 * MS, 3),
        ("prefill", 120 * MS, 30 * MS, 3),
        ("decode", 150 * MS, 120 * MS, 4),
    ]
    assert set(found["request_id"]) == {7}


def test_spans_of_all_requests_sum_to_their_end_to_end():
    columns = parts.request_columns(500)
    found = spans(columns)
    totals = np.bincount(found["request_id"], weights=found["duration_ps"], minlength=500).astype(np.int64)
    assert (totals == columns["finished_ps"] - columns["arrived_ps"]).all()
    assert (found["duration_ps"] > 0).all()
