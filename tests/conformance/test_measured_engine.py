"""The scenarios of the measured engine against what was measured: latencies within a few percent.

What the host does between steps was fitted on these runs (see sim/catalog/engines.yaml), so this shows the
quality of a fit; it is no validation.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from sim import api

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios" / "measured"
RUNS = {
    "h200-colocated-light": ("h200-colocated.yaml", None),
    "h200-colocated-long": ("h200-colocated.yaml", "long"),
    "h200-disagg-light": ("h200-disagg.yaml", None),
}
LATENCIES = ("ttft_s", "tpot_s", "e2e_s")


def measured(name):
    lines = (ROOT / "tests" / "data" / "measured" / f"{name}.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return {column: np.array([float(row[column]) for row in rows]) for column in rows[0]}


@pytest.fixture(scope="module", params=RUNS)
def both(request):
    scenario, variant = RUNS[request.param]
    return measured(request.param), api.run(api.load(SCENARIOS / scenario, variant=variant))


def test_every_request_is_served(both):
    took, run = both
    assert (run.requests["status"] == "finished").all()
    assert run.requests["request_id"].tolist() == took["id"].tolist()


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize(("fraction", "within"), [(0.5, 0.05), (0.9, 0.05), (0.99, 0.10)])
def test_latencies_are_what_the_engine_took(both, latency, fraction, within):
    took, run = both
    simulated = np.nanquantile(run.requests[latency], fraction)
    assert simulated == pytest.approx(np.nanquantile(took[latency], fraction), rel=within)


def test_single_requests_are_near_what_they_took(both):
    """Not only the percentiles: the order of requests by what they took is the same."""
    took, run = both
    for latency in LATENCIES:
        both_of_them = np.array([took[latency], run.requests[latency]])
        known = ~np.isnan(both_of_them).any(axis=0)
        assert np.corrcoef(np.log(both_of_them[:, known]))[0, 1] > 0.9
