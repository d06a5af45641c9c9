"""A look-up costs the same in a pool of ten nodes and of two thousand, whoever holds how much of a prompt.

Steps are lines of Python that run: the same number each time, on any machine. Time says that nothing that
grows with the nodes is hidden behind one of them.
"""

import sys
from time import process_time

import pytest

from sim.kvpool.pool import KvPool

NODES = (10, 100, 500, 2000)
SYSTEM = tuple(range(12))
SECOND_PS = 10**12


def pool_of(nodes, kind):
    """All nodes have the system prompt and 20 blocks of their own; some of them less, as `kind` says."""
    rule = "ttl" if kind == "ttl" else "lru"
    pool = KvPool([dict.fromkeys(range(nodes), 40)], rule, ttl_ps=100 * SECOND_PS if kind == "ttl" else None)
    for node, cache in enumerate(pool.caches):
        cuts = {"one has less": node == 1, "half have less": node % 2, "one has more": node}
        if cuts.get(kind):
            cache.keep(SYSTEM[:7])
        else:
            cache.keep(SYSTEM)
            cache.keep((*SYSTEM, *range(1000 + 100 * node, 1020 + 100 * node)))
        pool.touched(cache, node * SECOND_PS // nodes)
    return pool


def look_up(pool, blocks):
    """What a conductor asks before it decides."""
    match = pool.match(blocks, 5 * SECOND_PS)
    length, holders = pool.longest(match)
    return length, len(holders), 3 in holders, pool.copies(match), pool.here(match, 4)


def steps(pool, blocks):
    """Lines that a look-up runs."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        look_up(pool, blocks)
    finally:
        sys.settrace(before)
    return count


KINDS = ("all", "ttl", "one has less", "half have less", "one has more")


@pytest.mark.parametrize("kind", KINDS)
def test_steps_do_not_depend_on_the_number_of_nodes(kind):
    prompts = {
        "goes on": (*SYSTEM, 10**9),
        "leaves": (*SYSTEM[:9], 10**9),
        "leaves early": (*SYSTEM[:4], 10**9),
        "one node's": (*SYSTEM, *range(1000, 1020)),
    }
    counts = []
    for nodes in NODES:
        pool = pool_of(nodes, kind)
        length, copies, *_ = look_up(pool, prompts["goes on"])
        short = {"one has less": nodes - 1, "half have less": nodes // 2, "one has more": 1}
        assert (length, copies) == (12, short.get(kind, nodes))
        counts.append({name: steps(pool, prompt) for name, prompt in prompts.items()})
    # A binary search takes a step more where there is more to search, but it runs in C.
    assert all(count == counts[0] for count in counts), counts


@pytest.mark.parametrize("kind", KINDS)
def test_time_does_not_depend_on_the_number_of_nodes(kind):
    asked = [(*SYSTEM, 10**9 + i) for i in range(200)]
    taken_s = []
    for nodes in (NODES[0], NODES[-1]):
        pool = pool_of(nodes, kind)
        rounds = []
        for _ in range(7):
            started_s = process_time()
            for blocks in asked:
                look_up(pool, blocks)
            rounds.append(process_time() - started_s)
        taken_s.append(min(rounds))
    assert taken_s[1] < 4 * taken_s[0], taken_s


def test_those_who_have_it_are_told_without_looking_at_the_others():
    """However many have less; and it is known at once whether one of them has it."""
    pool = pool_of(500, "half have less")
    _, holders = pool.longest(pool.match((*SYSTEM, 7)))
    assert sorted(holders) == list(range(0, 500, 2))
    assert 4 in holders
    assert 5 not in holders
    assert 1000 not in holders
    length, holders = pool.longest(pool.match((*SYSTEM[:7], 10**9)))
    assert (length, len(holders), sorted(holders)) == (7, 500, list(range(500)))
