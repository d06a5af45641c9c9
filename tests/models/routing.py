"""Router policies by looking at every replica, from what their documentation says."""

from models.cache import longest_prefix


class NaivePool:
    """What a router knows: outstanding tokens, when each replica was chosen last, and the caches."""

    def __init__(self, replicas, caches=None, block_tokens=1, load_weight=1.0):
        self.tokens = [0] * replicas
        self.chosen_at = [0] * replicas
        self.choices = 0
        self.caches = caches
        self.block_tokens = block_tokens
        self.load_weight = load_weight

    def give(self, replica, tokens):
        self.choices += 1
        self.chosen_at[replica] = self.choices
        self.tokens[replica] += tokens

    def choose(self, policy, request):
        return {"round_robin": self.next, "least_loaded": self.least, "prefix_aware": self.cheapest}[policy](
            request
        )

    def next(self, _request):
        return self.choices % len(self.tokens)

    def least(self, _request=None):
        order = [(self.tokens[r], self.chosen_at[r], r) for r in range(len(self.tokens))]
        return min(order)[2]

    def cheapest(self, request):
        least = self.least()
        if self.caches is None or not request.blocks:
            return least
        longest, holders = longest_prefix(self.caches, request.blocks)
        candidates = [least]
        if self.caches[least].cached(request.blocks) < longest and len(holders) <= 16:
            candidates += holders
        costs = [self.cost(replica, request) for replica in candidates]
        return candidates[costs.index(min(costs))]

    def cost(self, replica, request):
        saved = min(self.caches[replica].cached(request.blocks) * self.block_tokens, request.input_tokens)
        return self.load_weight * self.tokens[replica] - saved
