"""Max-min fair rates by the textbook, in exact fractions; and transfers computed anew at each event.

Progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2): all rates rise together from zero; when a
link is full the flows on it stop; the others go on. A flow that crosses a link twice takes twice its
rate there.
"""

from fractions import Fraction
from math import ceil


def fair_rates(paths, capacities):
    """The rate of each flow; `paths` are lists of link numbers, `capacities` are by link number."""
    rates = [Fraction(0)] * len(paths)
    rising = set(range(len(paths)))
    while rising:
        steps = []
        for link, capacity in enumerate(capacities):
            here = {flow: path.count(link) for flow, path in enumerate(paths) if link in path}
            risers = [flow for flow in here if flow in rising]
            if risers:
                room = Fraction(capacity) - sum(rates[flow] * times for flow, times in here.items())
                steps.append((room / sum(here[flow] for flow in risers), risers))
        step = min(room for room, _ in steps)
        for flow in rising:
            rates[flow] += step
        for room, risers in steps:
            if room == step:
                rising -= set(risers)
    return rates


def transfer_ends(transfers, capacities, changes=()):
    """When each transfer ends; `transfers` are (start, bytes, path), in order of their start.

    Between two events all rates are constant; after each one they are computed anew. An end counts from
    the next whole picosecond on, and all that end in the same picosecond are gone together. `changes` are
    (instant, link, capacity): that of the link from then on.
    """
    ends = [None] * len(transfers)
    left = {}
    waiting = list(range(len(transfers)))
    capacities, coming = list(capacities), sorted(changes)
    now = 0
    while waiting or left:
        order = list(left)
        rates = dict(zip(order, fair_rates([transfers[i][2] for i in order], capacities), strict=True))
        due = {i: now + ceil(left[i] / rates[i]) for i in order}
        instants = list(due.values())
        if waiting:
            instants.append(transfers[waiting[0]][0])
        if coming:
            instants.append(coming[0][0])
        then = min(instants)
        for i in order:
            left[i] -= rates[i] * (then - now)
            if due[i] == then:
                ends[i] = then
                del left[i]
        now = then
        while coming and coming[0][0] == now:
            _, link, capacity = coming.pop(0)
            capacities[link] = capacity
        while waiting and transfers[waiting[0]][0] == now:
            i = waiting.pop(0)
            left[i] = Fraction(transfers[i][1])
    return ends
