"""Transfers against SimGrid: the same networks, flows and starts, and when each flow ends.

The stored cases were played by SimGrid (see `simgrid/README.md`). Both simulators are given the very same
numbers: a second of SimGrid is 2**38 picoseconds here, so that capacities are scaled by a power of two, which
costs a float nothing, and starts are whole picoseconds. The ends of ours are rounded up to a picosecond; none
is before 1000 s, where a picosecond is 4e-15 of the time. A cap of a flow's own is a link of its own.
"""

import json
from pathlib import Path

import pytest

from sim.clock import FLOW_START, Clock
from sim.network.flows import FlowNetwork
from sim.network.maxmin import Link
from sim.network.path import Path as Way

TOLERANCE = 1e-12
PS_PER_SECOND_OF_SIMGRID = 2**38
STORED = json.loads(Path(__file__).with_name("simgrid").joinpath("cases.json").read_text())
CASES = {case["name"]: case for case in STORED["cases"]}


class Replay:
    """A stored case on our clock; `ends` are in seconds of SimGrid, by flow."""

    def __init__(self, case):
        self.clock = Clock()
        self.links = []
        for rate in case["capacities"]:
            self.link(rate)
        starts = [self.begin(*flow) for flow in case["flows"]]
        self.network = FlowNetwork(self.clock, [0.0] * len(self.links))
        self.ends = [None] * len(starts)
        for number, (start_ps, size, way) in enumerate(starts):
            self.clock.at(start_ps, FLOW_START + number).callbacks.append(self.send(number, size, way))
        while self.clock.advance(1000):
            pass

    def link(self, bytes_per_s):
        capacity = bytes_per_s / PS_PER_SECOND_OF_SIMGRID
        assert capacity * PS_PER_SECOND_OF_SIMGRID == bytes_per_s
        self.links.append(Link(len(self.links), capacity))
        return self.links[-1]

    def begin(self, start_s, size, numbers, cap):
        """When a flow starts in picoseconds, its size, and its links."""
        links = [self.links[i] for i in numbers] + ([self.link(cap)] if cap else [])
        return (
            start_s * PS_PER_SECOND_OF_SIMGRID,
            size,
            Way(tuple(links), tuple(link.id for link in links), 0),
        )

    def send(self, number, size, way):
        def end(_):
            self.ends[number] = self.clock.now / PS_PER_SECOND_OF_SIMGRID

        return lambda _: self.network.send([(size, way)]).callbacks.append(end)


@pytest.mark.parametrize("name", CASES)
def test_flows_end_when_simgrid_says(name):
    case = CASES[name]
    ours = Replay(case).ends
    worst = max(abs(own - end) / end for own, end in zip(ours, case["ends"], strict=True))
    assert worst <= TOLERANCE, f"{worst:.2e}"


def test_there_are_enough_cases_of_every_kind():
    families = {name.rpartition("-")[0] for name in CASES}
    assert len(families) == 12
    assert len({str(case["capacities"]) for case in CASES.values()}) >= 60
    assert sum(len(case["flows"]) for case in CASES.values()) >= 2000
    assert min(min(case["ends"]) for case in CASES.values()) >= 1000


def alone_s(case, flow):
    """How long a flow takes with its path to itself."""
    _, size, numbers, cap = flow
    return size / min([case["capacities"][i] for i in numbers] + ([cap] if cap else []))


@pytest.mark.parametrize("name", CASES)
def test_cases_are_about_sharing(name):
    """In every case flows hold each other back; otherwise it would tell nothing."""
    case = CASES[name]
    slowed = [
        end - flow[0] > 1.01 * alone_s(case, flow)
        for flow, end in zip(case["flows"], case["ends"], strict=True)
    ]
    assert sum(slowed) >= len(slowed) / 5


def test_where_the_cases_come_from_is_with_them():
    provenance = STORED["provenance"]
    assert provenance["simgrid"].startswith("3.")
    assert "network/model:CM02" in provenance["configuration"]
    assert provenance["lazy_against_full_relative"] < TOLERANCE / 100
