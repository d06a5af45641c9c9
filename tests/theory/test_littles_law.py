"""Little's law with unfinished work counted: the mean number somewhere is the rate times the mean time there.

Over a window it is an identity of areas, so it must hold to the picosecond: the number of requests in each
place, as seen from outside after every event, summed over time, against the phases of the rows. An
overloaded system is the one where leaving out the unfinished would show.
"""

from fractions import Fraction
from random import Random

import pytest
from models.play import plan, pool, seat
from models.rebuild import rows
from models.wires import SharedWires

from sim.clock import Clock, Errand
from sim.serving.cluster import Serving
from sim.tables.recorder import MemorySink, Recorder
from sim.tables.schema import PHASES, STATUSES
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

HORIZON_PS = 60_000

SETTINGS = {
    "hardly any load": {"gap": 900},
    "normal load": {"gap": 150},
    "prefill overloaded": {"gap": 20, "prefill_per_token": 9},
    "decode overloaded": {"gap": 25, "decode_base": 80, "prefill_tokens": 10**6, "decode_tokens": 10**6},
    "decode memory short": {"gap": 50, "decode_tokens": 64, "prefill_tokens": 10**6},
    "prefill memory short": {"gap": 60, "prefill_tokens": 40, "capacity": 1 / 8},
    "fabric overloaded": {"gap": 200, "capacity": 1 / 32, "prefill_tokens": 10**6, "decode_tokens": 10**6},
}


def setting(gap, prefill_per_token=2, decode_base=10, decode_tokens=400, prefill_tokens=4000, capacity=2):
    """A cluster of two and two replicas, its wires, and requests up to the horizon."""
    timing = FixedTiming(
        prefill_base_ps=5,
        prefill_per_token_ps=prefill_per_token,
        decode_base_ps=decode_base,
        decode_per_sequence_ps=1,
        decode_per_token_ps=0,
    )
    seats = [seat(node) for node in range(4)]
    serving_plan = plan(
        pool("prefill", seats[:2], timing, prefill_tokens, max_batch_tokens=40),
        pool("decode", seats[2:], timing, decode_tokens, max_sequences=6),
    )
    dice = Random(gap)
    requests, at = [], 0.0
    while at < HORIZON_PS:
        at += dice.expovariate(1 / gap)
        requests.append(Request(len(requests), round(at), dice.randint(5, 30), dice.randint(1, 25)))
    return serving_plan, requests[:-1], SharedWires(4, 1, 7, capacity)


def counts(serving):
    """Requests in each place, as the parts of the engine say themselves."""
    prefills, decodes = serving.prefill.replicas, serving.decode.replicas
    return {
        "live": len(serving.live),
        "queue": sum(len(replica.queue) for replica in prefills),
        "reserve": sum(replica.reserving for replica in decodes),
        "decode_queue": sum(replica.waiting for replica in decodes),
        "decode": sum(replica.running for replica in decodes),
    }


def observed(serving_plan, requests, wires):
    """Time integrals of the counts up to the horizon, and the rows."""
    clock, sink = Clock(), MemorySink()
    serving = Serving(clock, serving_plan, wires, Recorder(sink))
    Errand(serving.offer(requests))
    clock.stop_after(HORIZON_PS)
    areas = dict.fromkeys(counts(serving), 0)
    before, here = 0, counts(serving)
    while clock.advance(1) or clock.is_over:
        for place, count in here.items():
            areas[place] += count * (clock.now - before)
        before, here = clock.now, counts(serving)
        if clock.is_over:
            break
    for place, count in here.items():
        areas[place] += count * (HORIZON_PS - before)
    assert clock.is_over or not serving.live
    serving.close()
    return areas, rows(sink.request_table())


@pytest.mark.parametrize("name", SETTINGS)
def test_number_is_rate_times_time(name):
    areas, found = observed(*setting(**SETTINGS[name]))
    window = HORIZON_PS
    rate = Fraction(len(found), window)
    for place, area in areas.items():
        phases = [phase for phase in PHASES if place in ("live", phase)]
        time = Fraction(sum(row[f"phase_{phase}_ps"] for row in found for phase in phases), len(found))
        assert Fraction(area, window) == rate * time, place


def test_the_settings_are_as_overloaded_as_they_say():
    """At the horizon much is unfinished where a name says so, and it is in the place it says."""
    for name, place in {
        "prefill overloaded": "queue",
        "decode overloaded": "decode_queue",
        "decode memory short": "reserve",
        "prefill memory short": "queue",
        "fabric overloaded": "transfer",
    }.items():
        _, found = observed(*setting(**SETTINGS[name]))
        unfinished = [row for row in found if row["status"] == STATUSES.index("unfinished")]
        assert len(unfinished) > len(found) / 10, name
        spent = {phase: sum(row[f"phase_{phase}_ps"] for row in found) for phase in PHASES}
        assert max(spent, key=lambda phase: spent[phase]) == place, (name, spent)


def test_all_of_a_small_load_is_finished():
    """Nothing is left of those that had the time."""
    _, found = observed(*setting(**SETTINGS["hardly any load"]))
    early = [row for row in found if row["arrived_ps"] < HORIZON_PS - 2000]
    assert {row["status"] for row in early} == {STATUSES.index("finished")}


def test_without_the_unfinished_it_would_not_hold():
    areas, found = observed(*setting(**SETTINGS["prefill overloaded"]))
    finished = [row for row in found if row["status"] == STATUSES.index("finished")]
    time = sum(row[f"phase_{phase}_ps"] for row in finished for phase in PHASES)
    assert time < areas["live"] * 0.75
