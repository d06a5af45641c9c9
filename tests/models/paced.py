"""Transfers that are paced while their bytes are made, some of them broken off: computed anew at each event.

In exact fractions. A course is one transfer: (start, bytes, paths, made, broken). Its paths share what is
left. `made` is (rate, instant): until then each path has no more than its part of the rate, and the transfer
does not end. `broken` is when it is broken off. Either may be None. At one instant transfers end, then are
made, then are broken off, then start.
"""

from fractions import Fraction
from math import ceil
from typing import NamedTuple

from models.filling import fair_rates


class Course(NamedTuple):
    start: int
    size: int
    paths: list
    made: tuple | None = None
    broken: int | None = None


class Present:
    """A transfer on its way."""

    def __init__(self, course):
        self.course = course
        self.left = Fraction(course.size)
        self.is_paced = course.made is not None


def rates_of(present, capacities):
    """The rate of each path of each transfer: a pace is one more link, which no other path is on."""
    capacities, paths = list(capacities), []
    for one in present:
        for path in one.course.paths:
            if one.is_paced:
                paths.append([*path, len(capacities)])
                capacities.append(Fraction(one.course.made[0]) / len(one.course.paths))
            else:
                paths.append(path)
    rates = iter(fair_rates(paths, capacities))
    return [[next(rates) for _ in one.course.paths] for one in present]


def instants_of(one):
    """When something happens to a transfer that its rate does not decide."""
    if one.is_paced:
        yield one.course.made[1]
    if one.course.broken is not None:
        yield one.course.broken


def move(one, rates, lasts_ps, carried):
    """Let a transfer go on for some time at the rates of its paths, but not beyond its last byte."""
    whole = sum(rates)
    for path, rate in zip(one.course.paths, rates, strict=True):
        for link in path:
            carried[link] += min(rate * lasts_ps, one.left * rate / whole)
    one.left -= min(whole * lasts_ps, one.left)


def played(courses, capacities):
    """When each course ends (None if broken off), and the bytes that each link has carried."""
    ends, carried = [None] * len(courses), [Fraction(0)] * len(capacities)
    waiting, present, now = list(range(len(courses))), {}, 0
    while waiting or present:
        rates = dict(zip(present, rates_of(list(present.values()), capacities), strict=True))
        due = {i: now + ceil(one.left / sum(rates[i])) for i, one in present.items() if not one.is_paced}
        fixed = [at for one in present.values() for at in instants_of(one)]
        then = min([*due.values(), *fixed, *(courses[i].start for i in waiting[:1])])
        for i, one in present.items():
            move(one, rates[i], then - now, carried)
            one.is_paced = one.is_paced and one.course.made[1] > then
            if due.get(i) == then:
                ends[i] = then
        now = then
        present = {i: one for i, one in present.items() if ends[i] is None and one.course.broken != now}
        while waiting and courses[waiting[0]].start == now:
            i = waiting.pop(0)
            present[i] = Present(courses[i])
    return ends, carried
