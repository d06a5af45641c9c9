"""Known traces: found by name, fetched with a pinned hash, refused with a remedy."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from workload_parts import DATA, requests_of

from sim.workload import library
from sim.workload.errors import TraceError
from sim.workload.library import fetch, find_trace, known_as, known_traces, raw_sha256
from sim.workload.readers import reader

RAW = (DATA / "mooncake.jsonl").read_bytes()


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Two folders of our own: $SIM_TRACES and the download cache."""
    traces, cache = tmp_path / "traces", tmp_path / "cache"
    traces.mkdir()
    monkeypatch.setenv("SIM_TRACES", str(traces))
    monkeypatch.setattr(library, "cache_folder", lambda: cache)
    monkeypatch.chdir(tmp_path)
    return traces, cache


@pytest.fixture
def tiny(monkeypatch):
    """A known trace that is our own sample."""
    trace = replace(
        known_traces()["mooncake-conversation"], name="tiny", sha256=hashlib.sha256(RAW).hexdigest()
    )
    monkeypatch.setattr(library, "known_traces", lambda: {"tiny": trace})
    return trace


def copy(raw):
    """Return a downloader that delivers these bytes."""
    return lambda url, output_file, pooch: Path(output_file).write_bytes(raw)


def test_known_traces_are_pinned_and_readable_by_a_reader():
    for name, trace in known_traces().items():
        assert trace.name == name
        assert len(trace.sha256) == 64
        assert trace.format in reader
        assert trace.licence
        assert trace.source
        commit = trace.url.split("/")[5]
        assert trace.url.startswith("https://raw.githubusercontent.com/")
        assert len(commit) == 40


@pytest.mark.parametrize(
    "file", ["mooncake-conversation", "mooncake_conversation_trace.jsonl.gz", "conversation_trace.jsonl"]
)
def test_a_name_is_found_in_the_folder_under_each_of_its_files(file, folders):
    (folders[0] / file).write_bytes(RAW)
    assert find_trace("mooncake-conversation") == folders[0] / file


def test_a_file_of_the_folder_is_found_by_its_own_name(folders):
    (folders[0] / "mine.csv.gz").write_bytes(b"")
    assert find_trace("mine.csv") == find_trace("mine.csv.gz") == folders[0] / "mine.csv.gz"


def test_a_name_resolved_against_a_scenario_is_still_a_name(folders):
    (folders[0] / "conversation_trace.jsonl").write_bytes(RAW)
    assert find_trace("/home/me/scenarios/mooncake-conversation") == folders[0] / "conversation_trace.jsonl"


def test_a_path_goes_before_a_name(folders, tmp_path):
    (tmp_path / "mine.csv").write_bytes(b"")
    (folders[0] / "mine.csv").write_bytes(b"")
    assert find_trace("mine.csv") == Path("mine.csv")


def test_a_known_trace_that_is_absent_comes_with_the_remedy():
    with pytest.raises(TraceError) as caught:
        find_trace("azure-code-2023")
    assert str(caught.value) == (
        "azure-code-2023: this trace is not on this machine\n"
        "  hint: run `sim trace get azure-code-2023`, or set $SIM_TRACES to its folder"
    )


def test_an_unknown_name_comes_with_the_nearest():
    with pytest.raises(TraceError) as caught:
        find_trace("mooncake-conversion")
    assert str(caught.value) == (
        "mooncake-conversion: no such trace\n"
        "  hint: give a path, or a name: did you mean 'mooncake-conversation'?"
    )


def test_a_fetched_trace_is_checked_cached_and_found(tiny, folders):
    path = fetch("tiny", copy(RAW))
    assert path == folders[1] / "mooncake_conversation_trace.jsonl"
    assert path.read_bytes() == RAW
    assert fetch("tiny", copy(b"not asked again")) == path
    assert find_trace("tiny") == path
    assert known_as(path) is tiny
    assert raw_sha256(path) == tiny.sha256
    assert len(requests_of(trace="tiny")) == 5


def test_other_bytes_than_the_pinned_are_refused_and_not_kept(tiny, folders):
    with pytest.raises(TraceError, match="cannot download") as caught:
        fetch("tiny", copy(RAW + b"\n"))
    assert "does not match the known hash" in str(caught.value)
    assert not list(folders[1].glob("*.jsonl"))


def test_without_a_network_the_remedy_is_told(tiny):
    def offline(url, output_file, pooch):
        raise OSError("Network is unreachable")

    with pytest.raises(TraceError) as caught:
        fetch("tiny", offline)
    assert str(caught.value) == (
        f"tiny: cannot download {tiny.url}: Network is unreachable\n"
        "  hint: check the network, or put mooncake_conversation_trace.jsonl into a folder "
        "and set $SIM_TRACES to it"
    )


def test_an_unknown_name_cannot_be_fetched():
    with pytest.raises(TraceError) as caught:
        fetch("azure-code")
    assert str(caught.value) == "azure-code: no trace of this name\n  hint: did you mean 'azure-code-2023'?"


def test_the_hash_is_that_of_the_unpacked_bytes(tmp_path):
    import gzip  # noqa: PLC0415

    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(RAW))
    assert raw_sha256(packed) == hashlib.sha256(RAW).hexdigest()
