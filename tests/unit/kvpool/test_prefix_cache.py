"""The caches of a pool and the tree they share, against lists that are searched from end to end."""

from random import Random

import pytest
from models.cache import NaiveCache, longest_prefix

from sim.kvpool.cache import Cache
from sim.kvpool.tree import PrefixTree


class Twins:
    """Caches and their naive twins, to which the same happens."""

    def __init__(self, *capacities):
        self.tree = PrefixTree()
        self.caches = [Cache(capacity, self.tree, i) for i, capacity in enumerate(capacities)]
        self.naive = [NaiveCache(capacity) for capacity in capacities]
        self.computing = []
        self.computed = []

    def admit(self, number, blocks, count):
        lease = self.caches[number].admit(blocks, count)
        hold = self.naive[number].admit(blocks, count)
        assert (lease is None) == (hold is None)
        if lease is not None:
            assert lease.hits == len(hold.held)
            self.computing.append((number, lease, hold))
        return lease is not None

    def publish(self, which):
        number, lease, hold = self.computing.pop(which)
        self.caches[number].publish(lease)
        self.naive[number].publish(hold)
        self.computed.append((number, lease, hold))

    def release(self, which):
        number, lease, hold = self.computed.pop(which)
        self.caches[number].release(lease)
        self.naive[number].release(hold)

    def keep(self, number, blocks):
        self.caches[number].keep(blocks)
        self.naive[number].keep(blocks)

    def compare(self, prompts):
        """Everything that can be asked has the same answer."""
        for cache, naive in zip(self.caches, self.naive, strict=True):
            assert list(cache.contents()) == naive.cached_ids
            assert (cache.free, cache.claimed, cache.cached) == (
                naive.free,
                naive.claimed,
                len(naive.cached_ids),
            )
            assert cache.free + cache.claimed + cache.cached == cache.capacity
            assert min(cache.free, cache.claimed, cache.cached) >= 0
        for prompt in prompts:
            match = self.tree.match(prompt)
            longest, holders = longest_prefix(self.naive, prompt)
            assert (match.longest()[0], sorted(match.longest()[1])) == (longest, holders)
            for number, naive in enumerate(self.naive):
                assert match.depth(number) == self.caches[number].hits(prompt) == naive.cached(prompt)


def family(dice, count, longest):
    """Prompts that share beginnings: a chained id stands for a block after all before it."""
    ids = {}
    prompts = []
    for _ in range(count):
        start = dice.choice(prompts)[0] if prompts and dice.random() < 0.8 else ()
        words = start[: dice.randint(0, len(start))]
        words += tuple(dice.randint(0, 2) for _ in range(dice.randint(0, longest - len(words))))
        words = words or (0,)
        blocks = tuple(ids.setdefault(words[: i + 1], len(ids)) for i in range(len(words)))
        prompts.append((words, blocks))
    parents = {ids[words]: ids.get(words[:-1]) for words in ids}
    return [blocks for _, blocks in prompts], parents


def happen(dice, twins, prompts):
    """One thing at random."""
    number = dice.randrange(len(twins.caches))
    what = dice.random()
    if what < 0.4:
        blocks = dice.choice(prompts)
        twins.admit(number, blocks, len(blocks))
    elif what < 0.45:
        twins.admit(number, (), dice.randint(1, 6))
    elif what < 0.65 and twins.computing:
        twins.publish(dice.randrange(len(twins.computing)))
    elif what < 0.85 and twins.computed:
        twins.release(dice.randrange(len(twins.computed)))
    else:
        twins.keep(number, dice.choice(prompts))


@pytest.mark.parametrize("first_seed", range(0, 200, 25))
def test_random_histories_leave_what_lists_leave(first_seed):
    for seed in range(first_seed, first_seed + 25):
        dice = Random(seed)
        prompts, parents = family(dice, 12, 9)
        twins = Twins(*(dice.randint(6, 25) for _ in range(dice.randint(1, 4))))
        for _ in range(70):
            happen(dice, twins, prompts)
            twins.compare(prompts)
            for cache in twins.caches:
                here = set(cache.contents())
                assert all(parents[block] is None or parents[block] in here for block in here)


def test_the_histories_have_what_is_hard():
    """Evictions, also around held blocks, refusals, prompts computed twice at once, or cached in part."""
    seen = {"evicted": 0, "refused": 0, "held while evicting": 0, "computed twice": 0, "partly cached": 0}
    for seed in range(100):
        dice = Random(seed)
        prompts, _ = family(dice, 12, 9)
        twins = Twins(dice.randint(6, 25))
        cache, naive = twins.caches[0], twins.naive[0]
        for _ in range(70):
            before = set(cache.contents())
            blocks = dice.choice(prompts)
            hits = cache.hits(blocks)
            twice = any(
                lease.blocks[hits : hits + 1] == blocks[hits : hits + 1] != ()
                for _, lease, _ in twins.computing
            )
            if dice.random() < 0.4:
                admitted = twins.admit(0, blocks, len(blocks))
                seen["refused"] += not admitted
                seen["computed twice"] += admitted and twice
                seen["partly cached"] += admitted and 0 < hits < len(blocks)
            else:
                happen(dice, twins, prompts)
            gone = before - set(cache.contents())
            seen["evicted"] += bool(gone)
            oldest_left = naive.cached_ids[0] if naive.cached_ids else None
            seen["held while evicting"] += (
                bool(gone) and oldest_left is not None and naive.is_held(oldest_left)
            )
    assert min(seen.values()) > 50, seen


def test_the_tail_of_the_oldest_prompt_goes_first():
    cache = Cache(6, PrefixTree(), 0)
    cache.keep((1, 2, 3))
    cache.keep((1, 4, 5))
    assert list(cache.contents()) == [3, 2, 5, 4, 1]
    cache.keep((7, 8))
    assert list(cache.contents()) == [2, 5, 4, 1, 8, 7]
    assert [cache.hits(blocks) for blocks in ((1, 2, 3), (1, 4, 5), (7, 8), (9,))] == [2, 3, 2, 0]


def test_blocks_of_a_prompt_in_memory_are_not_evicted():
    cache = Cache(5, PrefixTree(), 0)
    cache.keep((1, 2))
    lease = cache.admit((1, 2, 3), 3)
    assert (lease.hits, cache.claimed, cache.cached, cache.free) == (2, 1, 2, 2)
    assert cache.admit((7, 8, 9), 3) is None
    cache.publish(lease)
    assert cache.admit((7, 8, 9), 3) is None
    cache.release(lease)
    assert cache.admit((7, 8, 9), 3) is not None
    assert list(cache.contents()) == [2, 1]


def test_a_prompt_computed_twice_at_once_is_cached_once():
    cache = Cache(10, PrefixTree(), 0)
    first, second = cache.admit((1, 2, 3), 3), cache.admit((1, 2, 3), 3)
    assert (second.hits, cache.claimed, cache.free) == (0, 6, 4)
    cache.publish(first)
    cache.publish(second)
    assert (cache.claimed, cache.cached, cache.free) == (0, 3, 7)


def test_memory_without_block_ids_comes_back_when_released():
    cache = Cache(10, PrefixTree(), 0)
    lease = cache.admit((), 4)
    cache.publish(lease)
    assert (cache.free, cache.claimed, cache.cached) == (6, 4, 0)
    cache.release(lease)
    assert (cache.free, cache.claimed, cache.cached) == (10, 0, 0)


def test_a_prompt_larger_than_the_memory_is_not_taken():
    cache = Cache(2, PrefixTree(), 0)
    assert cache.admit((1, 2, 3), 3) is None
    cache.keep((1, 2, 3))
    assert (cache.free, cache.cached) == (2, 0)


def test_what_nobody_holds_leaves_the_tree():
    dice = Random(5)
    twins = Twins(12, 15, 9)
    prompts, _ = family(dice, 30, 9)
    for _ in range(300):
        happen(dice, twins, prompts)
    while twins.computing:
        twins.publish(0)
    while twins.computed:
        twins.release(0)
    assert len(twins.tree) > 3
    for number, cache in enumerate(twins.caches):
        cache.keep(tuple(range(1000, 1000 + cache.capacity)))
        assert cache.free == 0
        assert twins.tree.match(range(1000, 1100)).depth(number) == cache.capacity
    assert len(twins.tree) == 2  # what all three hold or hold the beginning of, and what only one holds
