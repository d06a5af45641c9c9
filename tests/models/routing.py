"""Router policies by looking at every replica, from what their documentation says."""

from random import Random

from models.cache import longest_prefix


class NaivePool:
    """What a router knows: outstanding tokens, when each replica was chosen last, and the caches.

    Everything that happened is written down, and read again from the start where it is seen late. `now` tells
    the time, `spots` has the domain and the unit of each replica, `near` those of the handoff's other end.
    """

    def __init__(self, replicas, caches=None, block_tokens=1, load_weight=1.0, stale_ps=0, now=lambda: 0):
        self.replicas = range(replicas)
        self.tokens = [0] * replicas
        self.chosen_at = [0] * replicas
        self.caches = caches
        self.block_tokens = block_tokens
        self.load_weight = load_weight
        self.stale_ps = stale_ps
        self.now = now
        self.history = []
        self.turns = 0
        self.homes = {}
        self.spots = None
        self.near = None
        self.dice = Random(0)

    def give(self, replica, tokens):
        self._note(replica, tokens, True)

    def take(self, replica, tokens):
        self._note(replica, -tokens, False)

    def _note(self, *news):
        self.history.append((self.now(), *news))
        if not self.stale_ps:
            self._learn(len([1 for _, _, _, is_choice in self.history if is_choice]), *news)

    def _learn(self, choices, replica, tokens, is_choice):
        self.tokens[replica] += tokens
        if is_choice:
            self.chosen_at[replica] = choices

    def _look_back(self):
        self.tokens, self.chosen_at = [0] * len(self.replicas), [0] * len(self.replicas)
        choices = 0
        for at, replica, tokens, is_choice in self.history:
            if at <= self.now() - self.stale_ps:
                choices += is_choice
                self._learn(choices, replica, tokens, is_choice)

    def choose(self, policy, request):
        if self.stale_ps:
            self._look_back()
        return {
            "round_robin": self.next,
            "least_loaded": self.least,
            "power_of_two": self.of_two,
            "session_sticky": self.at_home,
            "topology_aware": self.nearest,
            "prefix_aware": self.cheapest,
            "prefix_score": self.highest,
        }[policy](request)

    def order(self, replica):
        return self.tokens[replica], self.chosen_at[replica], replica

    def next(self, _request):
        self.turns += 1
        return (self.turns - 1) % len(self.replicas)

    def least(self, _request=None):
        return min(self.replicas, key=self.order)

    def of_two(self, _request):
        if len(self.replicas) == 1:
            return 0
        one = self.dice.randrange(len(self.replicas))
        others = [replica for replica in self.replicas if replica != one]
        return min(one, others[self.dice.randrange(len(others))], key=self.order)

    def at_home(self, request):
        if request.session == -1:
            return self.least()
        return self.homes.setdefault(request.session, self.least())

    def nearest(self, request):
        if self.near is None:
            return self.least()

        def cost(replica):
            domain, unit = self.spots[replica]
            steps = 0 if domain == self.near[0] else 1 if unit == self.near[1] else 2
            far = self.load_weight * self.tokens[replica] + request.input_tokens * steps
            return far, steps, self.order(replica)

        return min(self.replicas, key=cost)

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
        return self.load_weight * self.tokens[replica] - self.saved(replica, request)

    def saved(self, replica, request):
        if self.caches is None:
            return 0
        return min(self.caches[replica].cached(request.blocks) * self.block_tokens, request.input_tokens)

    def highest(self, request):
        if not any(self.saved(replica, request) for replica in self.replicas):
            return self.least()
        low, high = min(self.tokens), max(self.tokens)

        def score(replica):
            idle = (high - self.tokens[replica]) / (high - low) if high > low else 1.0
            return self.saved(replica, request) / request.input_tokens + self.load_weight * idle

        return min(self.replicas, key=lambda replica: (-score(replica), self.order(replica)))
