"""The clock: ties by kind, then by id; events that move, ring, and stop; errands."""

from itertools import permutations

import pytest

from sim.clock import ARRIVAL, FLOW_END, FLOW_START, TIMER, Clock, Errand, Moment


def played(clock):
    while clock.advance(10):
        pass


def note(log, word):
    return lambda _: log.append(word)


RANKS = {
    "flow end 0": FLOW_END,
    "flow end 7": FLOW_END + 7,
    "arrival 3": ARRIVAL + 3,
    "timer 1": TIMER + 1,
    "timer 2": TIMER + 2,
    "flow start 0": FLOW_START,
}


def test_ties_are_decided_by_kind_then_id_never_by_who_came_first():
    for order in permutations(RANKS):
        clock, log = Clock(), []
        for name in order:
            clock.at(5, RANKS[name]).callbacks.append(note(log, name))
        played(clock)
        assert log == list(RANKS)
        assert clock.now == 5


def test_equal_ranks_keep_their_order_of_scheduling():
    clock, log = Clock(), []
    for word in "abc":
        clock.at(5, TIMER).callbacks.append(note(log, word))
    played(clock)
    assert log == ["a", "b", "c"]


def test_earlier_instants_come_first_whatever_the_rank():
    clock, log = Clock(), []
    clock.at(6, FLOW_END).callbacks.append(note(log, (6, "end")))
    clock.at(5, FLOW_START).callbacks.append(note(log, (5, "start")))
    played(clock)
    assert log == [(5, "start"), (6, "end")]


def test_an_event_moves_with_those_who_wait_for_it():
    clock, log = Clock(), []

    def wait(moment):
        yield moment
        log.append(clock.now)

    early = clock.at(10, TIMER)
    Errand(wait(early))
    late = clock.move(early, 20, TIMER)
    earlier = clock.move(late, 15, TIMER)
    played(clock)
    assert log == [15]
    assert earlier.processed


def test_rung_events_happen_now_in_their_rank():
    """Rung in a flow end: after an arrival of the same instant that is due, before a flow start."""
    clock, log = Clock(), []
    idle = Moment(clock)
    idle.callbacks.append(note(log, ("rung", 5)))
    clock.at(5, FLOW_END).callbacks.append(lambda _: clock.ring(idle, TIMER))
    clock.at(5, ARRIVAL).callbacks.append(note(log, "arrival"))
    clock.at(5, FLOW_START).callbacks.append(note(log, "start"))
    clock.at(6, FLOW_END).callbacks.append(note(log, "later"))
    played(clock)
    assert log == ["arrival", ("rung", 5), "start", "later"]


def test_a_rung_event_happens_even_where_nothing_else_is_due():
    clock, log = Clock(), []
    idle = Moment(clock)
    idle.callbacks.append(lambda _: log.append(clock.now))
    clock.at(5, FLOW_END).callbacks.append(lambda _: clock.ring(idle, TIMER))
    clock.at(9, FLOW_END)
    played(clock)
    assert log == [5]


def test_time_is_whole_picoseconds():
    clock = Clock()
    clock.at(3 * 10**18 + 1, TIMER)
    played(clock)
    assert clock.now == 3 * 10**18 + 1
    assert isinstance(clock.now, int)


def test_nothing_happens_after_the_horizon():
    clock, log = Clock(), []
    for at_ps in (5, 10, 11):
        clock.at(at_ps, TIMER).callbacks.append(note(log, at_ps))
    clock.stop_after(10)
    played(clock)
    assert log == [5, 10]
    assert clock.now == 10
    assert clock.is_over


def test_without_a_horizon_it_ends_with_the_last_event():
    clock = Clock()
    clock.at(5, TIMER)
    played(clock)
    assert (clock.now, clock.is_over) == (5, False)


def test_advance_says_how_many_events_happened():
    clock = Clock()
    for at_ps in range(5):
        clock.at(at_ps, TIMER)
    assert [clock.advance(2), clock.advance(2), clock.advance(2), clock.advance(2)] == [2, 2, 1, 0]


def test_an_errand_starts_at_once_and_goes_from_event_to_event():
    clock, log = Clock(), []

    def course():
        log.append(("begins", clock.now))
        yield clock.at(3, TIMER)
        log.append(("goes on", clock.now))
        yield clock.timeout(4)
        log.append(("ends", clock.now))

    Errand(course())
    assert log == [("begins", 0)]
    played(clock)
    assert log == [("begins", 0), ("goes on", 3), ("ends", 7)]


def test_an_errand_does_not_wait_for_what_has_happened():
    clock, log = Clock(), []
    over = Moment(clock)
    over.fire()

    def course():
        yield over
        log.append(clock.now)

    Errand(course())
    assert log == [0]


def test_several_errands_wait_for_one_event_in_turn():
    clock, log = Clock(), []
    event = clock.at(2, TIMER)

    def course(word):
        yield event
        log.append(word)

    for word in "abc":
        Errand(course(word))
    played(clock)
    assert log == ["a", "b", "c"]


def test_simpy_processes_run_on_it():
    clock, log = Clock(), []

    def process():
        yield clock.timeout(2)
        log.append(clock.now)

    clock.process(process())
    played(clock)
    assert log == [2]


def test_a_failed_event_nobody_cares_for_is_raised():
    clock = Clock()
    clock.event().fail(RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"):
        played(clock)


def test_an_exception_in_an_errand_is_not_swallowed():
    clock = Clock()

    def course():
        yield clock.at(1, TIMER)
        raise ValueError("broken")

    Errand(course())
    with pytest.raises(ValueError, match="broken"):
        played(clock)
