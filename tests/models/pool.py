"""A pool of KV memories without any cleverness: `NaiveCache`s in lists, which are searched for everything.

What host memory evicts goes to the NVMe of the same node, together with all blocks before it; blocks of one
prompt that went one after the other go in one piece. Reads are counted block by block, and forgotten when no
place has the block any more.
"""

from models.cache import NaiveCache, longest_prefix


class NaivePool:
    """`lent[tier][node]` blocks; places are numbered tier by tier, nodes in their order."""

    def __init__(self, lent, rule, ttl, prompts):
        self.ttl = ttl
        self.prompts = prompts
        self.places = [(tier, node) for tier in range(len(lent)) for node in sorted(lent[tier])]
        self.caches = [NaiveCache(lent[tier][node], rule) for tier, node in self.places]
        self.lost = []
        self.reads = {}

    def match(self, now):
        """A look-up: what nobody has touched for too long goes first."""
        for cache in self.caches:
            cache.now = now
            if self.ttl is not None:
                cache.expire(now - self.ttl)
        self.forget_reads()

    def here(self, node, blocks):
        """The longest prefix on a node, and where; host memory where both have as much."""
        best, where = 0, None
        for place, cache in zip(self.places, self.caches, strict=True):
            if place[1] == node and cache.cached(blocks) > best:
                best, where = cache.cached(blocks), place
        return best, where

    def longest(self, blocks):
        return longest_prefix(self.caches, blocks)

    def having(self, block):
        return [number for number, cache in enumerate(self.caches) if block in cache.cached_ids]

    def read(self, blocks):
        for block in blocks:
            if self.having(block):
                self.reads[block] = self.reads.get(block, 0) + 1

    def forget_reads(self):
        self.reads = {block: count for block, count in self.reads.items() if self.having(block)}

    def way_to(self, block):
        """A prompt up to a block."""
        prompt = next(prompt for prompt in self.prompts if block in prompt)
        return prompt[: prompt.index(block) + 1]

    def pieces(self, number):
        """What a place has evicted since it was asked last: prefixes, and how much of their ends has gone."""
        return self.pieces_of(self.caches[number])

    def pieces_of(self, cache):
        pieces = []
        for block in cache.gone:
            fitting = [piece for piece in pieces if block in self.way_to(piece[-1])[-2:-1]]
            if fitting:
                piece = fitting[0]  # the one that has waited longest
                pieces.remove(piece)
            else:
                piece = []
            piece.append(block)
            pieces.append(piece)
        order = {block: at for at, block in enumerate(cache.gone)}
        pieces.sort(key=lambda piece: order[piece[0]])
        cache.gone = []
        return [(self.way_to(piece[0]), len(self.way_to(piece[0])) - len(piece)) for piece in pieces]

    def lose(self, node):
        self.lost.append(node)
        for place, cache in zip(self.places, self.caches, strict=True):
            if place[1] == node:
                cache.lose()

    def occupancy(self):
        found = []
        for tier, name in enumerate(("dram", "nvme")):
            own = [
                cache
                for place, cache in zip(self.places, self.caches, strict=True)
                if place[0] == tier and place[1] not in self.lost
            ]
            if own:
                found.append(
                    (name, sum(len(cache.cached_ids) for cache in own), sum(c.capacity for c in own))
                )
        return found
