"""The KV memory of a prefill replica, and who caches what, without any cleverness.

`NaiveCache` is a list of cached block ids, the one touched longest ago first, and a list of what each prompt
in memory holds. Nothing is inferred: every question is answered by looking at everything.
"""


class NaiveHold:
    """A prompt in memory: the ids it holds, the ids it is computing, and its blocks without an id."""

    def __init__(self, held, new, nameless):
        self.held = list(held)
        self.new = list(new)
        self.nameless = nameless


class NaiveCache:
    """Blocks of one replica."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.cached_ids = []
        self.holds = []

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
        for block in reversed(blocks):
            if block in self.cached_ids:
                self.cached_ids.remove(block)
            self.cached_ids.append(block)

    def admit(self, blocks, count):
        hits = self.cached(blocks)
        wanted = count - hits
        evictable = [
            block for block in self.cached_ids if not self.is_held(block) and block not in blocks[:hits]
        ]
        if wanted > self.free + len(evictable):
            return None
        self.touch(blocks[:hits])
        while wanted > self.free:
            self.cached_ids.remove(evictable.pop(0))
        hold = NaiveHold(blocks[:hits], blocks[hits:], count - len(blocks) if blocks else count)
        self.holds.append(hold)
        return hold

    def publish(self, hold):
        """The new blocks are cached (once, if another prompt has computed them meanwhile) and held."""
        blocks = hold.held + hold.new
        hold.new = []
        self.touch(blocks)
        hold.held = blocks

    def release(self, hold):
        self.holds.remove(hold)

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
