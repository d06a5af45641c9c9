"""What holds on every network at every instant, whatever the fabric, the flows, and the way of solving.

Traffic is watched between any two events: bytes, capacities (also of links that were left out of the
sharing), the bottleneck of every flow, and that no link idles while bytes wait for it.
"""

from random import Random

import pytest
from models.clusters import SMALL, changed, cluster_of
from models.filling import fair_rates
from models.traffic import Traffic, transfers

from sim.clock import FLOW_START, Clock
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.network.maxmin import Link, MaxMin, Rated
from sim.network.path import Path

TOLERANCE = 1e-12

NARROW_LEAVES = ("leaf: {radix: 64, uplinks: 4}", "leaf: {radix: 64, uplinks: 2}")
NARROW_CORES = ("uplinks: 8}", "uplinks: 2}")
HASHED = ("rails: 8", "rails: 8\n  routing: {kind: ecmp}")
LOSSY = ("rails: 8", "rails: 8\n  routing: {kind: spray, efficiency: 83 %}")
STAGED = ("rails: 8", "rails: 8\n  gpudirect: false")

FABRICS = {
    "spray by rail": (1, ()),
    "spray, rails merged": (8, ()),
    "oversubscribed": (8, (NARROW_LEAVES, NARROW_CORES)),
    "oversubscribed by rail, efficiency below one": (2, (NARROW_LEAVES, LOSSY)),
    "hashed": (1, (HASHED,)),
    "staged through host memory": (4, (STAGED,)),
}
"""Rails merged into one, and the changes to the small fabric: 12 nodes in 3 units and 2 pods."""

CAPS = (0.004, 0.02, 0.05, 0.3)
"""Rates in bytes per picosecond that some flows cannot exceed; a rail carries 0.05."""


@pytest.fixture(params=FABRICS)
def traffic(request, tmp_path):
    """Sixty transfers over a fabric, every third with a cap."""
    merged, changes = FABRICS[request.param]
    fabric = Fabric(cluster_of(tmp_path, changed(SMALL, *changes)), merged)
    dice = Random(request.param)
    found = Traffic(fabric)
    for number, (start_ps, parts) in enumerate(transfers(dice, 60, range(6), range(12), fabric.groups)):
        found.send_at(start_ps, number, parts, None if number % 3 else dice.choice(CAPS))
    return found


def loads(flows):
    """The load of every link that bytes of some flows cross, by number, shared or only counted."""
    found = {}
    for flow in flows:
        for link in flow.counted:
            found[link] = found.get(link, 0.0) + flow.rate
    return found


def test_bytes_are_the_integral_of_rates_by_flow_and_by_link(traffic):
    """On all links that bytes cross. An end is rounded up, which may count for a byte more."""
    moved, crossed = {}, {}
    for before, then in traffic.play():
        flows = traffic.flows()
        for flow in flows:
            moved[flow] = moved.get(flow, 0.0) + flow.rate * (then - before)
        for link, load in loads(flows).items():
            crossed[link] = crossed.get(link, 0.0) + load * (then - before)
    assert len(traffic.ends) == 60
    assert len(moved) >= 60
    for flow, moved_bytes in moved.items():
        assert flow.size * (1 - TOLERANCE) <= moved_bytes <= flow.size * (1 + TOLERANCE) + 1
    assert crossed.keys() == traffic.sent.keys()
    for link, size in traffic.sent.items():
        assert traffic.network.carried[link] == pytest.approx(size, rel=TOLERANCE)
        assert size * (1 - TOLERANCE) <= crossed[link] <= size * (1 + TOLERANCE) + len(moved)


def test_no_link_is_ever_above_its_capacity(traffic):
    """Nor those that were left out of the sharing because that could not happen."""
    fullest, left_out = 0.0, set()
    for _ in traffic.play():
        flows = traffic.flows()
        for number, load in loads(flows).items():
            link = traffic.fabric.links[number]
            assert load <= link.capacity * (1 + TOLERANCE)
            fullest = max(fullest, load / link.capacity)
        left_out.update(link for flow in flows for link in set(flow.counted) - {own.id for own in flow.links})
        for flow in flows:
            assert all(flow.rate <= traffic.caps.get(link, flow.rate) for link in flow.links)
    assert fullest >= 1 - TOLERANCE
    assert left_out.isdisjoint(i for i, link in enumerate(traffic.fabric.described) if link.can_saturate)


def test_every_flow_has_at_every_instant_a_full_link_on_which_nobody_is_faster(traffic):
    """The definition of max-min fairness, and with it of work conservation: no flow could go faster."""
    kinds = set()
    for _ in traffic.play():
        flows = traffic.flows()
        load = loads(flows)
        for flow in flows:
            link = flow.bottleneck
            assert link in flow.links
            full = load[link.id] if link not in traffic.caps else flow.rate
            assert full >= link.capacity * (1 - TOLERANCE)
            assert flow.rate >= max(other.rate for other in link.flows) * (1 - TOLERANCE)
            kinds.add("cap" if link in traffic.caps else traffic.fabric.described[link.id].kind)
    assert "cap" in kinds
    assert len(kinds) >= 3


@pytest.mark.parametrize("seed", range(10))
def test_a_link_that_all_bytes_cross_is_never_idle_while_there_are_any(seed):
    """Whoever is fast and whoever slow: a busy period of the link ends as if it were a single queue."""
    dice = Random(seed)
    capacity = dice.uniform(1, 2)
    shared, access = Link(0, capacity), [Link(i, capacity * dice.uniform(1, 2)) for i in range(1, 6)]
    clock = Clock()
    network = FlowNetwork(clock, [0.0] * 6)
    gaps, start_ps, empty_ps, expected = [], 0, 0.0, []
    for number in range(80):
        start_ps += dice.choice((0, 10**4, 4 * 10**5, 5 * 10**6))
        size = dice.randint(1, 2 * 10**6)
        if start_ps >= empty_ps and number:
            expected.append(empty_ps)
        empty_ps = max(empty_ps, start_ps) + size / capacity
        path = Path((dice.choice(access), shared), (0,), 0)
        clock.at(start_ps, FLOW_START + number).callbacks.append(
            lambda _, parts=((size, path),): network.send(parts)
        )
    was_busy = False
    while clock.advance(1):
        if was_busy and not network.active:
            gaps.append(clock.now)
        was_busy = bool(network.active)
    assert len(gaps) >= 5
    assert gaps == pytest.approx([*expected, empty_ps], abs=81)


@pytest.mark.parametrize("seed", range(40))
def test_flows_with_a_cap_are_max_min_fair(seed):
    """Against the textbook in fractions, in which a cap is a link of one's own."""
    dice = Random(seed)
    capacities = [dice.uniform(0.2, 3) for _ in range(dice.randint(1, 5))]
    links = [Link(i, capacity) for i, capacity in enumerate(capacities)]
    solver, present = MaxMin(), {}
    for number in range(40):
        if present and dice.random() < 0.4:
            flow = dice.choice(list(present))
            del present[flow]
            solver.remove(flow)
            continue
        numbers = dice.sample(range(len(links)), dice.randint(1, min(3, len(links))))
        cap = dice.choice((0.01, 0.1, 0.3, 5)) * dice.uniform(1, 1.5)
        flow = Rated((*(links[i] for i in numbers), Link(100 + number, cap)))
        present[flow] = (numbers, cap)
        solver.add(flow)
        paths = [[*own, len(capacities) + i] for i, (own, _) in enumerate(present.values())]
        rates = fair_rates(paths, capacities + [cap for _, cap in present.values()])
        assert [flow.rate for flow in present] == pytest.approx(
            [float(rate) for rate in rates], rel=TOLERANCE
        )


def test_what_capped_flows_leave_goes_to_the_others():
    """Of 10: one takes its 1, another its 2; the third could have 9 and gets the rest, as does the fourth."""
    shared, solver = Link(0, 10.0), MaxMin()
    flows = [Rated((shared, Link(i + 1, cap))) for i, cap in enumerate((1.0, 2.0, 9.0))] + [Rated((shared,))]
    for flow in flows:
        solver.add(flow)
    assert [flow.rate for flow in flows] == [1, 2, 3.5, 3.5]
    assert [flow.bottleneck is shared for flow in flows] == [False, False, True, True]


@pytest.mark.parametrize("kind", FABRICS)
def test_a_wider_link_never_lowers_the_smallest_rate(kind, tmp_path):
    """Not of any link of a fabric; and when all are twice as wide all flows are exactly twice as fast."""
    merged, changes = FABRICS[kind]
    fabric = Fabric(cluster_of(tmp_path, changed(SMALL, *changes)), merged)
    dice = Random(kind)
    found = transfers(dice, 25, range(6), range(12), fabric.groups)
    paths = [fabric.gpu_to_gpu(*ends).links for _, parts in found for _, *ends in parts]

    def rates(wider=()):
        """The rates of all flows at once, with some links twice as wide."""
        links = {link: Link(link.id, link.capacity * (1 + (link in wider))) for link in fabric.links}
        solver, flows = MaxMin(), [Rated(tuple(links[link] for link in path)) for path in paths]
        for flow in flows:
            solver.add(flow)
        return [flow.rate for flow in flows]

    shared = list(dict.fromkeys(link for path in paths for link in path))
    before = rates()
    for wider in dice.sample(shared, min(12, len(shared))):
        assert min(rates([wider])) >= min(before) * (1 - TOLERANCE)
    assert rates(shared) == [2 * rate for rate in before]
