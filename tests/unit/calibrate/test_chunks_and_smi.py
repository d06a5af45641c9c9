"""How context is cut into chunks, and what nvidia-smi says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.calibrate import smi
from sim.calibrate.attention import SHORTEST_CHUNK, chunk_tokens, power_of_two
from sim.calibrate.meter import Reading


@given(
    st.lists(st.integers(1, 140_000), min_size=1, max_size=64),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([1, 20, 132]),
    st.sampled_from([16, 64]),
)
def test_chunks_are_whole_pages_that_cover_the_longest_context(contexts, kv_heads, processors, page):
    chunk = chunk_tokens(contexts, kv_heads, processors, page)
    assert chunk % page == 0
    chunks = -(-max(contexts) // chunk)
    assert (chunks - 1) * chunk < max(contexts) <= chunks * chunk
    # No chunk is much shorter than is worth its part, unless the whole context is.
    assert chunk >= min(SHORTEST_CHUNK, max(contexts)) / 2


def test_one_long_context_is_dealt_out_over_the_gpu():
    assert chunk_tokens([131_072], 8, 132, 64) == 1024  # 128 chunks for each of 8 heads


@pytest.mark.parametrize(("number", "power"), [(1, 1), (2, 2), (3, 4), (4096, 4096), (5120, 8192)])
def test_powers_of_two(number, power):
    assert power_of_two(number) == power


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1980, 412.55, 51, 98", Reading(1980, 412.55, 51.0)),
        ("345, 75.1, 30, 0", None),  # idle
        ("[N/A], 412.55, 51, 98", None),
        ("Unable to determine the device handle", None),
        ("", None),
    ],
)
def test_readings_of_a_gpu_at_work(line, found):
    assert smi.reading(line) == found


def test_without_the_program_nothing_is_said(monkeypatch):
    monkeypatch.setattr(smi, "PROGRAM", "no-such-program-here")
    assert smi.described() == {}
    watch = smi.Watch()
    assert watch.taken() == []
    watch.close()
