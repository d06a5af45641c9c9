"""Prompts of several shapes, and a pool beside its naive twin, to both of which the same happens."""

from models.pool import NaivePool

from sim.kvpool.pool import DRAM, NVME, KvPool, Place


def chained(words_of_prompts):
    """Block ids of prompts given as tuples of words: an id stands for a block after all before it."""
    ids = {}
    return [
        tuple(ids.setdefault(words[: i + 1], len(ids)) for i in range(len(words)))
        for words in words_of_prompts
        if words
    ]


def shared_systems(dice):
    """A few system prompts, each before many short prompts; some ask for less than a whole one."""
    systems = [(name,) * dice.randint(2, 7) for name in "abc"]
    prompts = []
    for user in range(24):
        system = dice.choice(systems)
        prompts.append(system + tuple((user, i) for i in range(dice.randint(0, 5))))
    return chained([*prompts, *(system[:2] for system in systems)])


def conversations(dice):
    """Each turn has all turns before it; all of them begin alike."""
    prompts = []
    for talk in range(7):
        turns = ("hello",)
        while len(turns) < 13:
            turns += tuple((talk, len(turns) + i) for i in range(dice.randint(1, 4)))
            prompts.append(turns)
    return chained(prompts)


def branches(dice):
    """Each prompt leaves another one somewhere."""
    prompts = [()]
    for _ in range(24):
        words = dice.choice(prompts)
        words = words[: dice.randint(0, len(words))]
        prompts.append(words + tuple(dice.randint(0, 2) for _ in range(dice.randint(0, 11 - len(words)))))
    return chained(prompts)


def combs(dice):
    """All beginnings of one long prompt, and prompts that leave it after every single block."""
    spine = tuple("spine" + str(i) for i in range(12))
    prompts = [spine[:i] for i in range(1, 13)]
    prompts += [spine[:i] + ((i, "off"),) * dice.randint(1, 3) for i in range(12)]
    return chained(prompts)


SHAPES = {shape.__name__: shape for shape in (shared_systems, conversations, branches, combs)}


SEEN = (
    "refused",
    "evicted",
    "demoted",
    "followed",
    "spared",
    "emptied",
    "lost",
    "abandoned",
    "expired",
    "uneven",
)


class PoolTwins:
    """A pool and its twin. Leases are kept as (number, lease, hold): writes under way, and what is held."""

    def __init__(self, dice, prompts, rule, nodes):
        self.dice = dice
        self.prompts = prompts
        longest = max(len(prompt) for prompt in prompts)
        lent = [
            {3 * node: dice.randint(longest - 1, 2 * longest) for node in range(nodes)},
            {
                3 * node: dice.randint(longest, 3 * longest)
                for node in range(nodes)
                if node == 0 or dice.random() < 0.7
            },
        ]
        ttl = 25 if rule == "ttl" else None
        self.real = KvPool(lent, rule, ttl_ps=ttl)
        self.naive = NaivePool(lent, rule, ttl, prompts)
        self.nodes = sorted(lent[DRAM])
        self.now = 100
        self.writes = []
        self.held = []
        self.gone = [[] for _ in self.real.caches]
        for number, cache in enumerate(self.real.caches):
            cache.evicted = lambda run, number=number: self.note(number, run)
        self.real.demote_to(self.demote)
        self.seen = dict.fromkeys(SEEN, 0)

    def note(self, number, run):
        assert 0 <= run.start < run.end
        self.gone[number].append((tuple(run.source[: run.end]), run.start))
        self.seen["evicted"] += 1

    def demote(self, node, run):
        """Write to NVMe what host memory evicts, and what is missing before it."""
        number = self.number(DRAM, node)
        self.note(number, run)
        below = self.number(NVME, node)
        assert below is not None
        self.gone_down.append((below, self.admit_real(below, tuple(run.source[: run.end]), run.end)))

    def number(self, tier, node):
        place = Place(tier, node)
        return self.real.places.index(place) if place in self.real.places else None

    def admit_real(self, number, blocks, count):
        cache = self.real.caches[number]
        lease = cache.admit(blocks, count)
        self.real.touched(cache, self.now)
        return lease

    def start(self, number, blocks, count):
        """A write begins, if there is room; so do the writes of what it drives out."""
        cache, twin = self.real.caches[number], self.naive.caches[number]
        before = list(cache.contents())
        self.gone_down = []
        lease, hold = self.admit_real(number, blocks, count), twin.admit(blocks, count)
        assert (lease is None) == (hold is None)
        pieces = self.naive.pieces(number)
        assert self.gone[number] == pieces
        self.gone[number] = []
        self.seen["refused"] += lease is None
        last_gone = max((before.index(prefix[-1]) for prefix, _ in pieces), default=0)
        self.seen["spared"] += any(twin.is_held(block) for block in before[:last_gone])
        if lease is not None:
            assert (lease.hits, lease.count) == (len(hold.held), count)
            self.writes.append((number, lease, hold))
        tier, node = self.naive.places[number]
        if tier == DRAM and (NVME, node) in self.naive.places:
            self.follow_down(self.naive.places.index((NVME, node)), pieces)
        self.naive.forget_reads()

    def follow_down(self, below, pieces):
        assert len(self.gone_down) == len(pieces)
        gone = []
        for (number, lease), (blocks, start) in zip(self.gone_down, pieces, strict=True):
            hold = self.naive.caches[below].admit(blocks, len(blocks))
            gone += self.naive.pieces(below)
            assert number == below
            assert (lease is None) == (hold is None)
            self.seen["demoted"] += 1
            if lease is not None:
                assert lease.hits == len(hold.held)
                self.seen["followed"] += lease.hits < start
                self.writes.append((below, lease, hold))
        assert self.gone[below] == gone
        self.gone[below] = []

    def finish(self):
        number, lease, hold = self.writes.pop(self.dice.randrange(len(self.writes)))
        self.real.caches[number].publish(lease)
        self.real.touched(self.real.caches[number], self.now)
        self.naive.caches[number].publish(hold)
        assert lease.lost == hold.lost
        self.held.append((number, lease, hold))

    def abandon(self):
        number, lease, hold = self.writes.pop(self.dice.randrange(len(self.writes)))
        self.real.caches[number].abandon(lease)
        self.naive.caches[number].abandon(hold)
        self.naive.forget_reads()
        self.seen["abandoned"] += 1

    def let_go(self):
        number, lease, hold = self.held.pop(self.dice.randrange(len(self.held)))
        self.real.caches[number].release(lease)
        self.naive.caches[number].release(hold)
        self.naive.forget_reads()

    def look_up(self, blocks):
        """A match, before which both let things expire."""
        before = sum(cache.cached for cache in self.real.caches)
        match = self.real.match(blocks, self.now)
        self.naive.match(self.now)
        self.seen["expired"] += sum(cache.cached for cache in self.real.caches) < before
        return match

    def read(self, blocks):
        """Some of the longest prefix is read at one of the places that have it."""
        match = self.look_up(blocks)
        length, holders = self.real.longest(match)
        assert (length, sorted(holders)) == self.naive.longest(blocks)
        if length:
            number, length = self.dice.choice(sorted(holders)), self.dice.randint(1, length)
            self.real.read(match, length)
            self.naive.read(blocks[:length])
            cache = self.real.caches[number]
            lease, hold = cache.hold(blocks, length), self.naive.caches[number].hold(blocks, length)
            self.real.touched(cache, self.now)
            self.held.append((number, lease, hold))

    def lose(self):
        """A node is lost for good, or one memory loses what it has and goes on."""
        node, number = self.dice.choice(self.nodes), self.dice.randrange(len(self.real.caches))
        under_way = {one[0] for one in self.writes + self.held}
        if self.dice.random() < 0.7:
            self.seen["emptied"] += number in under_way
            self.real.caches[number].lose()
            self.naive.caches[number].lose()
        elif len(self.real.lost) < len(self.nodes) - 2 and node not in self.real.lost:
            self.seen["lost"] += any(self.real.places[one].node == node for one in under_way)
            self.real.lose(node)
            self.naive.lose(node)
        self.naive.forget_reads()

    def happen(self):
        """One thing at random."""
        dice, blocks = self.dice, self.dice.choice(self.prompts)
        number = dice.randrange(len(self.real.caches))
        what = dice.random()
        self.now += dice.choice((0, 0, 0, 1, 1, 5))
        for twin in self.naive.caches:
            twin.now = self.now
        if what < 0.35 and self.real.places[number].node not in self.real.lost:
            self.start(number, blocks, len(blocks) + (dice.random() < 0.1))
        elif what < 0.38 and self.real.places[number].node not in self.real.lost:
            self.start(number, (), dice.randint(1, 6))
        elif what < 0.57 and self.writes:
            self.finish()
        elif what < 0.6 and self.writes:
            self.abandon()
        elif what < 0.87 and self.held:
            self.let_go()
        elif what < 0.876:
            self.lose()
        else:
            self.read(blocks)

    def compare(self, prompts):
        """Everything that can be asked has the same answer."""
        for cache, twin in zip(self.real.caches, self.naive.caches, strict=True):
            assert list(cache.contents()) == twin.cached_ids
            assert (cache.free, cache.claimed, cache.cached) == (
                twin.free,
                twin.claimed,
                len(twin.cached_ids),
            )
            assert min(cache.free, cache.claimed, cache.cached) >= 0
            assert all(block in twin.cached_ids for hold in twin.holds for block in hold.held)
            here = set(twin.cached_ids)
            assert all(set(self.naive.way_to(block)) <= here for block in here)
        assert list(self.real.occupancy()) == self.naive.occupancy()
        for prompt in prompts:
            self.compare_answers(prompt)
        self.compare_index()

    def compare_answers(self, prompt):
        match = self.real.tree.match(prompt)
        length, holders = self.real.longest(match)
        naive_length, naive_holders = self.naive.longest(prompt)
        assert (length, sorted(holders)) == (naive_length, naive_holders)
        assert len(holders) == self.real.copies(match) == len(naive_holders)
        for number, twin in enumerate(self.naive.caches):
            assert match.depth(number) == self.real.caches[number].hits(prompt) == twin.cached(prompt)
            assert (number in holders) == (number in naive_holders)
        for node in self.nodes:
            assert self.real.here(match, node) == self.naive.here(node, prompt)

    def compare_index(self):
        """Who holds each block, and how often it was read, stretch by stretch and scanned."""
        holders = {}
        for stretch in self.real.tree.stretches():
            assert stretch.length == max(holding.held for holding in stretch.holders.values())
            self.seen["uneven"] += stretch.ranking is not None
            for number, holding in stretch.holders.items():
                assert holding.stretch is stretch
                for block in stretch.source[stretch.start : stretch.start + holding.held]:
                    holders.setdefault(block, []).append(number)
        everywhere = {block for twin in self.naive.caches for block in twin.cached_ids}
        assert {block: sorted(found) for block, found in holders.items()} == {
            block: self.naive.having(block) for block in everywhere
        }
        self.compare_hottest()

    def compare_hottest(self):
        hottest = self.real.hottest(1 << 30)
        assert [one[0] for one in hottest] == sorted((one[0] for one in hottest), reverse=True)
        reads = {}
        for count, first, length, places in hottest:
            stretch = self.real.tree.match(self.naive.way_to(first)).path[-1]
            blocks = stretch.source[stretch.start : stretch.start + length]
            assert blocks[0] == first
            assert places == len(self.naive.having(blocks[-1]))
            reads.update(dict.fromkeys(blocks, count))
        assert reads == self.naive.reads
