"""Transfers whose queue pairs take from one pool of bytes, computed anew at each event, in exact fractions.

A transfer is (start, bytes, paths). All its queue pairs work until the last byte has gone, each at its own
max-min rate (models.filling). An end counts from the next whole picosecond on.
"""

from fractions import Fraction
from math import ceil

from models.filling import fair_rates


def pooled_ends(transfers, capacities):
    """When each transfer ends, and what each of its queue pairs has moved by then; in order of start."""
    ends, moved = [None] * len(transfers), [[Fraction(0)] * len(paths) for _, _, paths in transfers]
    waiting, present, now = list(range(len(transfers))), [], 0
    while waiting or present:
        pairs = [(i, j) for i in present for j in range(len(transfers[i][2]))]
        found = fair_rates([transfers[i][2][j] for i, j in pairs], capacities)
        rates = dict(zip(pairs, found, strict=True))
        whole = {i: sum(rates[i, j] for j in range(len(transfers[i][2]))) for i in present}
        left = {i: transfers[i][1] - sum(moved[i]) for i in present}
        due = {i: now + ceil(left[i] / whole[i]) for i in present}
        then = min([*due.values(), *(transfers[i][0] for i in waiting[:1])])
        for i, j in pairs:
            moved[i][j] += rates[i, j] * min(Fraction(then - now), left[i] / whole[i])
        for i in present:
            if due[i] == then:
                ends[i] = then
        present = [i for i in present if due[i] != then]
        now = then
        while waiting and transfers[waiting[0]][0] == now:
            present.append(waiting.pop(0))
    return ends, moved
