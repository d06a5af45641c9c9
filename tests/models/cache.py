"""The KV memory of one place, and who caches what, without any cleverness.

`NaiveCache` is a list of cached block ids, the one touched longest ago first, and a list of what each prompt
in memory holds. Nothing is inferred: every question is answered by looking at everything. Each block has its
own count of touches, depth and time; a rule looks at all blocks that could go and takes the worst.
"""


class NaiveHold:
    """A prompt in memory: the ids it holds, the ids it is computing, and its blocks without an id."""

    def __init__(self, held, new, nameless):
        self.held = list(held)
        self.new = list(new)
        self.nameless = nameless
        self.lost = False


class NaiveCache:
    """Blocks of one place. `gone` lists what went to make room, in that order."""

    def __init__(self, capacity, rule="lru"):
        self.capacity = capacity
        self.rule = rule
        self.cached_ids = []
        self.holds = []
        self.gone = []
        self.now = 0
        self.expired_before = 0
        self.counts = {}
        self.depths = {}
        self.times = {}

    @property
    def claimed(self):
        return sum(len(hold.new) + hold.nameless for hold in self.holds)

    @property
    def free(self):
        return self.capacity - self.claimed - len(self.cached_ids)

    def cached(self, blocks):
        """Leading blocks of a prompt that are cached, counted from the front."""
        hits = 0
        for block in blocks:
            if block not in self.cached_ids:
                break
            hits += 1
        return hits

    def is_held(self, block):
        return any(block in hold.held for hold in self.holds)

    def touch(self, blocks):
        """Make blocks the most recent ones, the deepest first, so that the head is the most recent."""
        for depth in reversed(range(len(blocks))):
            block = blocks[depth]
            if block in self.cached_ids:
                self.cached_ids.remove(block)
            self.cached_ids.append(block)
            self.counts[block] = self.counts.get(block, 0) + 1
            self.depths[block] = depth
            self.times[block] = self.now

    def forget(self, block):
        self.cached_ids.remove(block)
        del self.counts[block], self.depths[block], self.times[block]

    def worst(self):
        """The block that goes next."""
        loose = [block for block in self.cached_ids if not self.is_held(block)]
        if self.rule == "lfu":
            return min(loose, key=lambda block: (self.counts[block], self.cached_ids.index(block)))
        if self.rule == "length_aware":
            return min(
                loose,
                key=lambda block: (self.counts[block], -self.depths[block], self.cached_ids.index(block)),
            )
        return loose[0]

    def admit(self, blocks, count):
        hits = self.cached(blocks)
        stay = [block for block in self.cached_ids if self.is_held(block) or block in blocks[:hits]]
        if count - hits > self.capacity - self.claimed - len(stay):
            return None
        hold = NaiveHold(blocks[:hits], blocks[hits:], count - len(blocks) if blocks else count)
        self.holds.append(hold)
        self.touch(blocks[:hits])
        while self.free < 0:
            block = self.worst()
            self.forget(block)
            self.gone.append(block)
        return hold

    def publish(self, hold):
        """The new blocks are cached (once, if another prompt has computed them meanwhile) and held."""
        blocks = hold.held + hold.new
        hold.new = []
        if not hold.lost:
            self.touch(blocks)
            hold.held = blocks

    def release(self, hold):
        self.holds.remove(hold)
        self.expire(self.expired_before)

    def abandon(self, hold):
        self.release(hold)

    def hold(self, blocks, length):
        hold = NaiveHold(blocks[:length], [], 0)
        self.holds.append(hold)
        self.touch(blocks[:length])
        return hold

    def lose(self):
        for block in list(self.cached_ids):
            self.forget(block)
        for hold in self.holds:
            hold.held = []
            hold.lost = True

    def expire(self, before):
        """Drop what was touched before an instant, if held as soon as it is not."""
        self.expired_before = before
        for block in list(self.cached_ids):
            if self.times[block] < before and not self.is_held(block):
                self.forget(block)

    def keep(self, blocks):
        hold = self.admit(blocks, len(blocks))
        if hold is not None:
            self.publish(hold)
            self.release(hold)


def longest_prefix(caches, blocks):
    """The length of the longest prefix that one cache holds, and the numbers of those that hold it."""
    lengths = [cache.cached(blocks) for cache in caches]
    longest = max(lengths)
    return longest, [number for number, length in enumerate(lengths) if length == longest > 0]
