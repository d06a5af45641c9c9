"""Arrival processes and lengths: rates, burstiness and distributions as asked, repeatable, in order."""

import subprocess
import sys
from itertools import islice

import numpy as np
import pytest
from workload_parts import S, requests_of, write

from sim.base.errors import UnsupportedError
from sim.base.streams import Streams
from sim.config.scenario import Arrivals, Lengths
from sim.config.scenario import Workload as WorkloadForm
from sim.workload.arrivals import arrival_chunks
from sim.workload.build import build_workload
from sim.workload.errors import TraceError
from sim.workload.lengths import length_draw

FIXED = {"kind": "fixed", "tokens": 10}
KINDS = [
    {"kind": "poisson", "rate": "50 req/s"},
    {"kind": "gamma", "rate": "50 req/s", "cv": 3.0},
    {"kind": "gamma", "rate": "50 req/s", "cv": 0.5},
    {"kind": "diurnal", "rate": "50 req/s", "period": "1 h", "peak_to_mean": 1.6},
]


def instants(form, count, seed=1):
    chunks = arrival_chunks(Arrivals(**form), Streams(seed).stream("arrivals"))
    found = np.concatenate(list(islice(chunks, -(-count // 8192))))
    return found[:count]


@pytest.mark.parametrize("form", KINDS, ids=lambda form: form["kind"])
class TestArrivals:
    def test_are_in_order_from_zero(self, form):
        at = instants(form, 50_000)
        assert at[0] >= 0
        assert np.all(np.diff(at) >= 0)

    def test_have_the_mean_rate(self, form):
        cycles_s = 3600.0
        rates = []
        for seed in range(1, 9):
            at = instants(form, 190_000, seed) / S
            rates.append(np.searchsorted(at, cycles_s) / cycles_s)
        error = np.std(rates, ddof=1) / np.sqrt(len(rates))
        assert error / 50 < 0.02, "test too weak"
        assert abs(np.mean(rates) - 50) < 4 * max(error, 0.05)

    def test_do_not_depend_on_how_far_one_reads(self, form):
        lengths = {"input": {"kind": "lognormal", "median_tokens": 9, "sigma": 1.0}, "output": FIXED}
        long = requests_of(until_ps=400 * S, arrivals=form, **lengths)
        assert requests_of(until_ps=100 * S, arrivals=form, **lengths) == [
            request for request in long if request.arrived_ps < 100 * S
        ]
        assert requests_of(limit=77, arrivals=form, **lengths) == long[:77]
        assert requests_of(until_ps=100 * S, seed=2, arrivals=form, **lengths) != long[: len(long) // 4]


@pytest.mark.parametrize(("form", "cv"), [(KINDS[0], 1.0), (KINDS[1], 3.0), (KINDS[2], 0.5)])
def test_gaps_have_the_coefficient_of_variation(form, cv):
    found = []
    for seed in range(1, 9):
        gaps = np.diff(instants(form, 50_000, seed))
        found.append(gaps.std() / gaps.mean())
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert error / cv < 0.02, "test too weak"
    assert abs(np.mean(found) - cv) < 4 * error


def test_diurnal_load_follows_its_sine():
    at_s = np.concatenate([instants(KINDS[3], 180_000, seed) / S % 3600 for seed in range(1, 6)])
    counts, edges = np.histogram(at_s, np.linspace(0, 3600, 13))
    middle = (edges[1:] + edges[:-1]) / 2
    shape = 1 + 0.6 * np.sin(2 * np.pi * middle / 3600) * np.sinc(1 / 12)
    assert np.all(np.abs(counts / counts.mean() - shape) < 5 * np.sqrt(1 / counts.mean()) * 1.3)


def test_a_workload_longer_than_the_clock_is_refused():
    with pytest.raises(UnsupportedError, match="more than 53 days"):
        instants({"kind": "poisson", "rate": "0.001 req/s"}, 10_000)


def draw(form, count=40_000):
    return length_draw(Lengths(**form), Streams(1).stream("input"))(count)


def test_lognormal_lengths_have_their_median_and_spread_and_are_cut():
    found = draw({"kind": "lognormal", "median_tokens": 1000, "sigma": 0.8})
    assert abs(np.log(found).mean() - np.log(1000)) < 4 * 0.8 / np.sqrt(len(found))
    assert abs(np.log(found).std() - 0.8) < 4 * 0.8 / np.sqrt(2 * len(found))
    cut = draw({"kind": "lognormal", "median_tokens": 2, "sigma": 2.0, "max_tokens": 30})
    assert (cut.min(), cut.max()) == (1, 30)


def test_empirical_lengths_come_from_the_file_in_its_proportions(tmp_path):
    path = write(tmp_path / "lengths.txt.gz", "100\n\n100\n100\n7\n")
    found = draw({"kind": "empirical", "file": str(path)})
    assert set(found.tolist()) == {7, 100}
    assert abs((found == 7).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / len(found))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("5\nfive\n", 2, "the length is five, not a number"),
        ("0\n", 1, "the length is 0; it must be at least 1"),
    ],
)
def test_a_file_of_lengths_says_its_bad_line(text, line, problem, tmp_path):
    path = write(tmp_path / "lengths.txt", text)
    with pytest.raises(TraceError) as caught:
        draw({"kind": "empirical", "file": str(path)})
    assert str(caught.value) == f"{path}:{line}: {problem}\n  hint: write one whole number a line"


def test_an_empty_file_of_lengths_is_refused(tmp_path):
    with pytest.raises(TraceError, match="holds no lengths"):
        draw({"kind": "empirical", "file": str(write(tmp_path / "lengths.txt", "\n"))})


def test_lengths_do_not_move_arrivals():
    other = {"kind": "lognormal", "median_tokens": 9, "sigma": 1.0}
    plain = requests_of(limit=500, arrivals=KINDS[0], input=FIXED, output=FIXED)
    varied = requests_of(limit=500, arrivals=KINDS[0], input=other, output=FIXED)
    assert [request.arrived_ps for request in plain] == [request.arrived_ps for request in varied]


@pytest.mark.parametrize("source", ["arrivals", "generator"])
def test_the_same_in_another_process_with_another_hash_seed(source):
    program = (
        "from sim.base.streams import Streams; from sim.config.scenario import Workload; import hashlib;"
        "from sim.workload.build import build_workload;"
        "lengths = {'kind': 'lognormal', 'median_tokens': 9, 'sigma': 1.0};"
        "forms = {'arrivals': {'arrivals': {'kind': 'gamma', 'rate': '9 req/s', 'cv': 2.0}, 'input': lengths,"
        " 'output': lengths}, 'generator': {'generator': 'mooncake-conversation', 'rate': '90 req/s'}};"
        f"form = Workload(limit=3000, **forms['{source}']);"
        "print(hashlib.sha256(repr(list(build_workload(form, Streams(5)))).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_iterating_again_gives_the_same_requests():
    form = WorkloadForm(arrivals=KINDS[1], input=FIXED, output=FIXED, limit=300)
    workload = build_workload(form, Streams(3))
    assert list(workload) == list(workload)
