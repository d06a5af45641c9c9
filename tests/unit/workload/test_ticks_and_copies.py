"""Arrivals spread within ticks, and traces overlaid with themselves."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_parts import MS, S, requests_of, write

from sim.base.errors import UnsupportedError
from sim.workload.copies import overlay
from sim.workload.ticks import spread

TICK = 3 * S
sessions = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(1, 2000), st.integers(1, 50), st.lists(st.integers(0, 9), max_size=4)
    ),
    min_size=1,
    max_size=40,
)


def arrivals(rows, unit_ps=S):
    """Return sorted arrivals whose blocks are chains: each id names its whole prefix."""
    names = {}
    found = []
    for at, given_tokens, made, chain in sorted(rows, key=lambda row: row[0]):
        blocks = [names.setdefault(tuple(chain[: end + 1]), len(names)) for end in range(len(chain))]
        found.append((at * unit_ps, given_tokens, made, blocks))
    return found


@given(sessions, st.integers(0, 3))
def test_spreading_moves_each_arrival_within_its_tick_and_loses_none(rows, seed):
    before = arrivals(rows, TICK)
    after = list(spread(before, TICK, np.random.default_rng(seed)))
    assert [at for at, *_ in after] == sorted(at for at, *_ in after)
    as_before = Counter((at // TICK * TICK, given, made, tuple(blocks)) for at, given, made, blocks in after)
    assert as_before == Counter((at, given, made, tuple(blocks)) for at, given, made, blocks in before)


def test_spread_arrivals_are_uniform_within_the_tick():
    before = [(k * TICK, 1, 1, ()) for k in range(2000) for _ in range(10)]
    within = np.array([at % TICK for at, *_ in spread(before, TICK, np.random.default_rng(1))]) / TICK
    counts, _ = np.histogram(within, np.linspace(0, 1, 11))
    assert np.all(np.abs(counts - 2000) < 5 * np.sqrt(2000))


def test_spreading_depends_on_the_seed_alone(tmp_path):
    path = write(
        tmp_path / "t.csv", "time,input,output\n" + "".join(f"{3 * (k // 5)},{k + 1},1\n" for k in range(50))
    )
    spread_once = requests_of(trace=str(path), tick="3 s")
    assert requests_of(trace=str(path), tick="3 s") == spread_once
    assert requests_of(trace=str(path), tick="3 s", seed=2) != spread_once
    assert len({request.arrived_ps for request in spread_once}) == 50


@given(sessions, st.integers(1, 6), st.integers(0, 3))
def test_copies_hold_each_request_once_and_keep_prefixes_apart(rows, copies, shared):
    trace = arrivals(rows)
    overlaid = list(overlay(iter(trace), copies, shared, np.random.default_rng(1)))
    assert [at for at, *_ in overlaid] == sorted(at for at, *_ in overlaid)
    lengths = Counter((given, made, len(blocks)) for _, given, made, blocks in trace)
    assert Counter((given, made, len(blocks)) for _, given, made, blocks in overlaid) == Counter(
        {key: count * copies for key, count in lengths.items()}
    )
    once = {(place, block) for *_, blocks in trace for place, block in enumerate(blocks)}
    found = {(place, block) for *_, blocks in overlaid for place, block in enumerate(blocks)}
    kept_apart = [block for place, block in once if place >= shared]
    assert len(found) == len(once) + (copies - 1) * len(kept_apart)
    assert len({block for _, block in found}) == len(found), "an id means one prefix"


@given(sessions, st.integers(2, 4))
def test_the_first_copy_is_the_trace_itself(rows, copies):
    trace = arrivals(rows)
    overlaid = Counter(
        (at, given, made, tuple(blocks))
        for at, given, made, blocks in overlay(trace, copies, 1, np.random.default_rng(1))
    )
    itself = Counter((at, given, made, tuple(blocks)) for at, given, made, blocks in trace)
    assert itself <= overlaid


def test_copies_keep_reuse_within_a_copy():
    trace = [(k * S, 1024, 1, [0, 1 + k // 2]) for k in range(100)]
    overlaid = list(overlay(trace, 5, 1, np.random.default_rng(1)))
    pairs = Counter(blocks[1] for *_, blocks in overlaid)
    assert set(pairs.values()) == {2}
    assert len(pairs) == 250
    assert {blocks[0] for *_, blocks in overlaid} == {0}


def test_copies_keep_the_load_steady():
    trace = [(k * S, 1, 1, ()) for k in range(1000)]
    overlaid = [at for at, *_ in overlay(trace, 40, 1, np.random.default_rng(1))]
    assert len(overlaid) == 40_000
    assert overlaid[0] >= 0
    assert overlaid[-1] < 1000 * S
    per_100_s, _ = np.histogram(np.array(overlaid) / S, np.arange(0, 1001, 100))
    assert np.all(np.abs(per_100_s - 4000) <= 40)


def test_hashes_as_ids_are_told_apart_too():
    trace = [(k * S, 512, 1, [2**63 + k // 2]) for k in range(6)]
    overlaid = list(overlay(trace, 3, 0, np.random.default_rng(1)))
    assert Counter(Counter(blocks[0] for *_, blocks in overlaid).values()) == {2: 9}


def test_a_trace_too_long_for_the_clock_is_refused():
    trace = [(0, 1, 1, ()), (27 * 86_400 * S, 1, 1, ())]
    with pytest.raises(UnsupportedError, match="more than 26 days"):
        list(overlay(trace, 2, 1, np.random.default_rng(1)))


def test_copies_of_a_file_are_numbered_and_repeatable(tmp_path):
    path = write(
        tmp_path / "t.csv", "time,input,output\n" + "".join(f"{k / 4},{k + 1},1\n" for k in range(50))
    )
    found = requests_of(trace=str(path), scale={"copies": 7})
    assert [request.id for request in found] == list(range(350))
    assert requests_of(trace=str(path), scale={"copies": 7}) == found
    assert requests_of(trace=str(path), scale={"copies": 7}, seed=9) != found
    assert requests_of(trace=str(path), scale={"copies": 7}, limit=20, until_ps=500 * MS) == [
        request for request in found[:20] if request.arrived_ps < 500 * MS
    ]
