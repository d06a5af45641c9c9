"""Drafted tokens of a naive model, looked at until one is wrong; lots are those of the engine."""

from sim.network.hashed import mixed


class Drafts:
    """What steps cost and give; without a speculation nothing is drafted, and a step gives one token."""

    def __init__(self, speculation):
        self.speculation = speculation
        self.count = 0 if speculation is None else len(speculation.acceptance)
        self.width = self.count + 1
        self.verified = {}

    def drafting_ps(self, timing, batch, context):
        if not self.count:
            return 0
        share, plain = self.count * self.speculation.draft_cost, timing.decode_table(batch)
        return round(share * plain.base_ps[batch]) + round(share * plain.per_token_ps[batch]) * context

    def step_ps(self, timing, batch, context):
        wide = timing.decode_table(batch * self.width)
        verifying = wide.base_ps[batch * self.width] + wide.per_token_ps[batch] * context
        return verifying + self.drafting_ps(timing, batch, context)

    def give(self, guest, now):
        """Give a sequence what a step gives it."""
        left = guest.request.output_tokens - len(guest.tokens)
        guest.tokens += [now] * min(1 + self.accepted(guest.request.id), left)

    def accepted(self, request_id):
        step = self.verified.get(request_id, 0)
        self.verified[request_id] = step + 1
        if not self.count:
            return 0
        lot = mixed(mixed(mixed(self.speculation.seed) ^ request_id) ^ mixed(step)) / 2**64
        chance, count = 1.0, 0
        for probability in self.speculation.acceptance:
            chance *= probability
            if lot >= chance:
                break
            count += 1
        return count
