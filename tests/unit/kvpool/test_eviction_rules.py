"""What each rule takes first, by hand; that nothing depends on what other caches hold."""

from random import Random

import pytest
from pool_parts import SHAPES

from sim.kvpool.cache import Run, joined
from sim.kvpool.eviction import eviction
from sim.kvpool.tree import PrefixTree


def cache_of(rule, capacity, tree=None, number=0):
    return eviction[rule](capacity, PrefixTree() if tree is None else tree, number)


def what_goes(cache, room):
    """The blocks that leave when a prompt of so many new blocks comes."""
    before = set(cache.contents())
    cache.keep(tuple(range(900, 900 + room)))
    return before - set(cache.contents())


def used(cache):
    """Two prompts: 1 2 3 asked for again and again, 7 8 since then but only once."""
    for _ in range(3):
        cache.keep((1, 2, 3))
    cache.keep((7, 8))
    return cache


@pytest.mark.parametrize(
    ("rule", "first", "then"),
    [("lru", {3}, {2, 3}), ("lfu", {8}, {7, 8}), ("length_aware", {8}, {7, 8}), ("ttl", {3}, {2, 3})],
)
def test_which_blocks_go(rule, first, then):
    assert what_goes(used(cache_of(rule, 5)), 1) == first
    assert what_goes(used(cache_of(rule, 5)), 2) == then


def test_among_blocks_touched_as_often_the_deepest_goes_first():
    for rule, goes in (("lfu", {2}), ("length_aware", {6}), ("lru", {2})):
        cache = cache_of(rule, 6)
        cache.keep((1, 2))
        cache.keep((3, 4, 5, 6))
        assert what_goes(cache, 1) == goes, rule


@pytest.mark.parametrize("rule", ["lfu", "length_aware"])
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_new_blocks_do_not_inherit_the_count_of_those_they_follow(rule, is_elsewhere):
    """Also where another cache had them all at once, so that they are one stretch."""
    tree = PrefixTree()
    cache = cache_of(rule, 6, tree)
    if is_elsewhere:
        cache_of(rule, 6, tree, number=1).keep((1, 2, 3, 4))
    for _ in range(3):
        cache.keep((1, 2))
    cache.keep((1, 2, 3, 4))
    for _ in range(2):
        cache.keep((7, 8))
    assert what_goes(cache, 2) == {3, 4}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rule", eviction.names())
def test_what_one_cache_does_does_not_depend_on_others(rule, shape):
    """The same prompts, alone and beside caches that split its stretches and extend them."""
    for seed in range(6):
        dice = Random(f"{rule} {shape} {seed}")
        prompts = SHAPES[shape](dice)
        alone, beside = cache_of(rule, 20), cache_of(rule, 20)
        crowd = [cache_of(rule, dice.randint(10, 40), beside.tree, number) for number in range(1, 6)]
        for _ in range(120):
            blocks = dice.choice(prompts)
            alone.keep(blocks)
            beside.keep(blocks)
            for _ in range(3):
                dice.choice(crowd).keep(dice.choice(prompts))
            assert list(alone.contents()) == list(beside.contents())


class TestExpiry:
    def test_blocks_go_once_nobody_has_touched_them_for_long_enough(self):
        cache = cache_of("ttl", 10)
        for now, blocks in ((100, (1, 2)), (110, (3,)), (120, (1,))):
            cache.keep(blocks)
            cache.note(now)
        assert cache.expire(100) == 100
        assert sorted(cache.contents()) == [1, 2, 3]
        assert cache.expire(101) == 110
        assert sorted(cache.contents()) == [1, 3]
        assert cache.expire(120) == 120
        assert sorted(cache.contents()) == [1]
        assert cache.expire(121) is None
        assert (cache.cached, cache.free, len(cache.tree)) == (0, 10, 0)

    def test_what_is_held_goes_when_it_is_let_go(self):
        cache = cache_of("ttl", 10)
        cache.keep((1, 2, 3))
        long, short = cache.hold((1, 2, 3), 1), cache.hold((1, 2, 3), 2)
        cache.note(100)
        cache.expire(500)
        assert sorted(cache.contents()) == [1, 2]
        cache.release(short)
        assert sorted(cache.contents()) == [1]
        cache.release(long)
        assert (cache.cached, cache.free) == (0, 10)

    def test_what_expires_has_not_been_evicted(self):
        gone = []
        cache = cache_of("ttl", 3)
        cache.evicted = gone.append
        cache.keep((1, 2))
        cache.note(100)
        cache.expire(500)
        assert gone == []
        cache.keep((1, 2))
        cache.keep((3, 4))
        assert gone == [Run((1, 2), 1, 2)]


class TestWhatIsTold:
    def test_all_is_settled_when_it_is_told(self):
        """Told of what went, one may look at the cache, and take from another one of the same tree."""
        tree = PrefixTree()
        upper, lower = (cache_of("lru", capacity, tree, number) for number, capacity in enumerate((6, 20)))
        lower.keep((1, 2, 3, 4, 5))

        def demote(run):
            assert upper.free + upper.claimed + upper.cached == upper.capacity
            assert upper.cached == len(list(upper.contents()))
            lower.keep(tuple(run.source[: run.end]))
            lower.keep((1, 2, 3))

        upper.evicted = demote
        upper.keep((10, 11))
        upper.keep((1, 2, 3, 4))
        upper.keep((20, 21, 22, 23))
        assert list(upper.contents()) == [2, 1, 23, 22, 21, 20]
        assert list(lower.contents()) == [5, 11, 10, 4, 3, 2, 1]

    def test_blocks_of_one_prompt_are_told_together(self):
        """Whatever stretches they lie in, and though those of two prompts take turns."""
        gone = []
        cache = cache_of("length_aware", 8)
        cache.evicted = gone.append
        cache.keep((1, 2, 3))
        cache.keep((1, 2, 4))
        cache.keep((5, 6, 7, 8))
        cache.keep((20, 21, 22, 23))
        assert gone == [Run((5, 6, 7, 8), 2, 4), Run((1, 2, 3), 2, 3), Run((1, 2, 4), 2, 3)]

    def test_a_run_joins_the_one_that_it_comes_before(self):
        left, right = (1, 2, 3, 4), (1, 2, 5, 6)
        runs = [Run(left, 3, 4), Run(right, 2, 4), Run(left, 2, 3), Run(right, 0, 2)]
        assert joined(runs) == [Run(left, 2, 4), Run(right, 0, 4)]
        assert joined([]) == []
        assert joined([Run(left, 0, 4), Run(right, 2, 4)]) == [Run(left, 0, 4), Run(right, 2, 4)]


class TestLoss:
    @pytest.mark.parametrize("rule", eviction.names())
    def test_nothing_is_left_and_all_room_comes_back(self, rule):
        cache = cache_of(rule, 10)
        cache.keep((1, 2, 3))
        read = cache.hold((1, 2, 3), 2)
        write, given_up = cache.admit((1, 2, 3, 4), 4), cache.admit((1, 8, 9), 4)
        cache.lose()
        assert (cache.hits((1, 2, 3)), cache.cached, cache.claimed, cache.free) == (0, 0, 4, 6)
        cache.publish(write)
        assert (cache.cached, cache.claimed, cache.free, write.lost) == (0, 3, 7, True)
        cache.abandon(given_up)
        cache.release(write)
        cache.release(read)
        assert (cache.cached, cache.claimed, cache.free, len(cache.tree)) == (0, 0, 10, 0)
        cache.keep(tuple(range(10)))
        assert cache.cached == 10
