"""The prefill queue, one prompt at a time, against M/M/1, M/D/1 and M/G/1.

Theory: with Poisson arrivals at rate l, service S and load r = l E[S], the mean wait is
l E[S^2] / (2 (1 - r)) (Pollaczek and Khinchine), whatever the distribution of S; and a request that arrives
finds the server free with probability 1 - r.

A test holds if the standard error over replications is small (else it proves nothing) and the mean is within
four of them.
"""

from math import sqrt
from random import Random
from statistics import fmean, stdev

import pytest
from models.play import plan, play, pool, seat
from models.wires import OwnWires

from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

pytestmark = pytest.mark.slow

PS = 10**9
"""Picoseconds of a mean service: small enough to be quick, large enough not to be coarse."""

LOAD = 0.5
REPLICATIONS = 16
CUSTOMERS = 9000
SETTLING = 500
"""Requests at the beginning that are left out, since they find the queue emptier than usual."""


def fixed(_dice):
    return 1.0


def exponential(dice):
    return dice.expovariate(1.0)


def of_two_lengths(dice):
    """Four in five take 0.5, one in five takes 3: mean 1, mean of the square 2."""
    return 0.5 if dice.random() < 0.8 else 3.0


SERVICES = {"M/D/1": (fixed, 1.0), "M/M/1": (exponential, 2.0), "M/G/1": (of_two_lengths, 2.0)}
"""How long a service takes, and the mean of its square."""


class Drawn:
    """A Timing whose prefill takes as long as the dice say."""

    def __init__(self, service, dice):
        self.service = service
        self.dice = dice

    def prefill_ps(self, chunks):
        assert len(chunks) == 1
        return round(PS * self.service(self.dice))

    def decode_table(self, max_batch):
        return FixedTiming(decode_base_ps=1).decode_table(max_batch)


def poisson(dice, mean_gap_ps, count, output_tokens):
    at = 0.0
    for number in range(count):
        at += dice.expovariate(1 / mean_gap_ps)
        yield Request(number, round(at), 1, output_tokens(dice))


def waits(service, seed):
    """How long each prompt waits for the prefill replica, in mean services, in order of arrival."""
    dice = Random(seed)
    one = plan(
        pool("prefill", [seat(0)], Drawn(service, dice), 10**9, max_batch_tokens=1),
        pool("decode", [seat(1)], FixedTiming(decode_base_ps=1), 10**9),
    )
    requests = list(poisson(Random(f"arrivals {seed}"), PS / LOAD, CUSTOMERS, lambda _: 1))
    played = play(one, requests, OwnWires(0))
    assert len(played.requests["request_id"]) == CUSTOMERS
    return (played.requests["phase_queue_ps"][SETTLING:] / PS).tolist()


def agrees(measured, expected):
    """The theory rule."""
    error = stdev(measured) / sqrt(len(measured))
    assert error / expected < 0.02, "the test is too weak"
    assert abs(fmean(measured) - expected) < 4 * error


@pytest.fixture(scope="module", params=SERVICES)
def queue(request):
    """Name of the queue, and the waits of each replication."""
    service, _ = SERVICES[request.param]
    return request.param, [waits(service, f"{request.param} {seed}") for seed in range(REPLICATIONS)]


def test_the_mean_wait_is_that_of_pollaczek_and_khinchine(queue):
    name, replications = queue
    expected = LOAD * SERVICES[name][1] / (2 * (1 - LOAD))
    agrees([fmean(each) for each in replications], expected)


def test_the_server_is_found_free_as_often_as_it_is(queue):
    _, replications = queue
    agrees([fmean(wait == 0 for wait in each) for each in replications], 1 - LOAD)
