"""Arrival rates that rise or come in bursts: counts are those of the integral of the rate."""

import numpy as np
import pytest

from sim.base.streams import Streams
from sim.config.arrivals import Arrivals
from sim.workload.arrivals import arrival_chunks

S = 10**12


def counts(edges_s, **form):
    """Arrivals between edges, in seconds."""
    found = []
    for chunk in arrival_chunks(Arrivals(**form), Streams(3).stream("workload.arrivals")):
        assert (np.diff(chunk) >= 0).all()
        found.append(chunk / S)
        if chunk[-1] / S > edges_s[-1]:
            break
    return np.histogram(np.concatenate(found), bins=edges_s)[0]


@pytest.mark.parametrize(("first", "last"), [(10, 90), (90, 10), (50, 50)])
def test_a_ramp_rises_and_stays(first, last):
    edges = np.array([0, 50, 100, 150, 200])
    middle = (first + last) / 2
    expected = np.array([50 * (first + middle) / 2, 50 * (middle + last) / 2, 50 * last, 50 * last])
    form = {"kind": "ramp", "rate": f"{last} req/s", "first_rate": f"{first} req/s", "period": "100 s"}
    assert (np.abs(counts(edges, **form) - expected) < 4 * np.sqrt(expected)).all()


def test_bursts_come_at_the_start_of_each_period():
    form = {"kind": "bursts", "rate": "5 req/s", "burst_rate": "200 req/s", "burst": "2 s", "period": "20 s"}
    edges = np.concatenate([[20 * i, 20 * i + 2] for i in range(30)] + [[600]])
    found = counts(edges, **form)
    bursts, between = found[::2], found[1::2]
    assert abs(bursts.sum() - 30 * 400) < 4 * np.sqrt(12_000)
    assert abs(between.sum() - 30 * 90) < 4 * np.sqrt(2700)
    assert bursts.min() > 300
    assert between.max() < 150
