"""Clients of ServeGen: rates, gaps and lengths of a small archive of our own making."""

import tarfile

import numpy as np
import pytest
from session_parts import clients

from sim.base.streams import Streams
from sim.workload.errors import TraceError
from sim.workload.servegen import ServeGenWorkload, weibull_shape

S = 10**12


def made(path, scale=1.0, seed=1, **limits):
    return list(ServeGenWorkload(path, Streams(seed), scale, **limits))


def test_rates_windows_and_lengths(tmp_path):
    requests = made(clients(tmp_path / "few"))
    at_s = np.array([request.arrived_ps for request in requests]) / S
    assert (np.diff(at_s) >= 0).all()
    assert [request.id for request in requests] == list(range(len(requests)))
    counts = np.histogram(at_s, bins=600 * np.arange(7))[0]
    # Gaps with a CV of 2: counts of 1200 have a standard deviation of about 2 sqrt(1200).
    assert np.abs(counts - [1200, 1800, 1200, 1200, 1200, 1200]).max() < 4 * 2 * 1200**0.5
    early = [request for request in requests if request.arrived_ps < 1800 * S]
    assert {request.input_tokens for request in early} == {10, 30}
    assert {request.output_tokens for request in early} == {7}
    late = requests[len(early) :]
    assert {request.input_tokens for request in late} == {1000}
    ones = sum(request.output_tokens == 1 for request in late) / len(late)
    assert ones == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize(("family", "cv"), [("Gamma", 2.0), ("Weibull", 1.6), ("Weibull", 0.5), ("", 1.0)])
def test_gaps_have_their_coefficient_of_variation(tmp_path, family, cv):
    """The second client sends in one window only; the first one alone is looked at."""
    folder = clients(tmp_path / "few", rate=4.0, cv=cv, family=family)
    (folder / "chunk-1-trace.csv").write_text("0,0,0,,0,0\n3600,0,0,,0,0\n")
    gaps = np.diff([request.arrived_ps for request in made(folder)])
    assert len(gaps) == pytest.approx(4 * 3600, rel=0.1)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.1)


def test_scale_limit_and_end(tmp_path):
    folder = clients(tmp_path / "few")
    assert len(made(folder, 0.5)) == pytest.approx(len(made(folder)) / 2, rel=0.1)
    assert len(made(folder, limit=17)) == 17
    assert made(folder, until_ps=60 * S)[-1].arrived_ps < 60 * S


def test_an_archive_is_as_good_as_a_folder(tmp_path):
    folder = clients(tmp_path / "few")
    with tarfile.open(tmp_path / "few.tar.gz", "w:gz") as archive:
        archive.add(folder, "reason/few")
    assert made(tmp_path / "few.tar.gz", limit=300) == made(folder, limit=300)
    assert made(folder, seed=2, limit=300) != made(folder, limit=300)


def test_the_shape_of_a_weibull_distribution():
    assert weibull_shape(1.0) == pytest.approx(1, rel=1e-6)
    assert weibull_shape(2.0) < 1 < weibull_shape(0.3)


MISTAKES = {
    "no clients": (lambda folder: [file.unlink() for file in folder.iterdir()], "holds no client"),
    "no lengths": (lambda folder: (folder / "chunk-0-dataset.json").unlink(), "has no chunk-0-dataset.json"),
    "a bad line": (
        lambda folder: (folder / "chunk-0-trace.csv").write_text("0,1,1,Gamma\nx\n"),
        ":2: not a window",
    ),
    "a family": (
        lambda folder: (folder / "chunk-0-trace.csv").write_text("0,1,1,Pareto\n600,1,1,Gamma\n"),
        ":1: chunk-0-trace.csv: no family 'Pareto'",
    ),
    "no JSON": (lambda folder: (folder / "chunk-1-dataset.json").write_text("{"), "cannot be read"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_wrong_is_told(tmp_path, name):
    spoil, message = MISTAKES[name]
    folder = clients(tmp_path / "few")
    spoil(folder)
    with pytest.raises(TraceError) as caught:
        made(folder)
    assert message in str(caught.value)


def test_a_file_that_is_no_archive(tmp_path):
    (tmp_path / "few.tar.gz").write_text("hello")
    with pytest.raises(TraceError, match="is no archive of clients"):
        made(tmp_path / "few.tar.gz")
