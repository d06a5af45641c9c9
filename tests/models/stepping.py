"""The whole serving path as an ordinary SimPy model: one event for each step of each decode batch.

Written from the documentation of the engine, to be obviously right and nothing else: processes, lists and
loops. A decode replica gives every sequence of its batch one token per step and writes down when. Memory is
counted by adding up what is there. What several things do at one instant is decided by (kind, id): flow
ends, arrivals, replicas' timers, flow starts; SimPy's event priority carries that rank, and everything that
merely follows from an event happens before the next rank.
"""

from random import Random

import simpy

from models.cache import NaiveCache
from models.drafting import Drafts
from models.filling import fair_rates
from models.routing import NaivePool

FLOW_END, ARRIVAL, TIMER, FLOW_START = (rank * 10**9 for rank in (1, 2, 3, 4))


class Instants(simpy.Environment):
    """SimPy with integer time and ranked events."""

    def at(self, instant, rank):
        event = simpy.Event(self)
        event._ok, event._value = True, None
        self.schedule(event, priority=rank, delay=instant - self.now)
        return event

    def soon(self, rank):
        return self.at(self.now, rank)


class Story:
    """What happened to one request; None is "not yet"."""

    def __init__(self, request):
        self.request = request
        self.status = "unfinished"
        self.cached_tokens = 0
        self.estimate = 0
        self.prefill_replica = self.decode_replica = None
        self.prefill = self.computed = self.reserved = self.received = self.decoding = self.finished = None
        self.tokens = []
        self.left = None

    @property
    def total_tokens(self):
        return self.request.input_tokens + self.request.output_tokens


class StepPrefill:
    """A prefill replica."""

    def __init__(self, model, number):
        self.model = model
        self.number = number
        self.cache = NaiveCache(model.plan.prefill.kv_tokens // model.plan.block_tokens)
        self.queue = []
        self.holds = {}
        self.news = model.env.event()

    def tell(self):
        if not self.news.triggered:
            self.news.succeed()

    def run(self):
        env, timing = self.model.env, self.model.plan.prefill.timing
        while True:
            batch = self.take_batch()
            if not batch:
                self.news = env.event()
                yield self.news
                yield env.soon(TIMER + self.number)
                continue
            chunks = [
                (story.request.input_tokens - story.cached_tokens, story.cached_tokens) for story in batch
            ]
            yield env.at(env.now + timing.prefill_ps(chunks), TIMER + self.number)
            for story in batch:
                story.computed = env.now
                self.cache.publish(self.holds[story])
                self.model.prefill_pool.take(self.number, story.estimate)
                self.model.after_prefill(story)

    def take_batch(self):
        batch = []
        budget = self.model.plan.prefill.max_batch_tokens
        while self.queue and budget > 0:
            story = self.queue[0]
            blocks, tokens = self.model.blocks(story), story.request.input_tokens
            hits = self.cache.cached(blocks)
            new = tokens - self.model.saved(story, hits)
            if batch and new > budget:
                break
            hold = self.cache.admit(blocks, -(-tokens // self.model.plan.block_tokens))
            if hold is None:
                break
            self.queue.pop(0)
            self.holds[story] = hold
            story.prefill = self.model.env.now
            story.cached_tokens = tokens - new
            batch.append(story)
            budget -= new
        return batch

    def let_go(self, story):
        self.cache.release(self.holds.pop(story))
        self.tell()


class StepDecode:
    """A decode replica."""

    def __init__(self, model, number):
        self.model = model
        self.number = number
        self.rank = TIMER + len(model.plan.prefill.seats) + number
        self.holding = []
        self.wanting = []
        self.waiting = []
        self.running = []
        self.news = model.env.event()

    def pages(self, story):
        return -(-story.total_tokens // self.model.plan.page_tokens)

    def has_room(self, story):
        capacity = self.model.plan.decode.kv_tokens // self.model.plan.page_tokens
        return sum(self.pages(other) for other in self.holding) + self.pages(story) <= capacity

    def reserve(self, story):
        granted = self.model.env.event()
        self.wanting.append((story, granted))
        self.grant()
        return granted

    def grant(self):
        while self.wanting and self.has_room(self.wanting[0][0]):
            story, granted = self.wanting.pop(0)
            self.holding.append(story)
            granted.succeed()

    def join(self, story):
        self.waiting.append(story)
        if not self.news.triggered:
            self.news.succeed()

    def run(self):
        env, plan = self.model.env, self.model.plan
        drafts = Drafts(plan.speculation)
        while True:
            while self.waiting and len(self.running) < plan.decode.max_sequences:
                story = self.waiting.pop(0)
                story.decoding = env.now
                self.running.append(story)
            if not self.running:
                self.news = env.event()
                yield self.news
                yield env.soon(self.rank)
                continue
            context = sum(story.request.input_tokens + len(story.tokens) for story in self.running)
            step_ps = drafts.step_ps(plan.decode.timing, len(self.running), context)
            yield env.at(env.now + step_ps, self.rank)
            for story in [story for story in self.running if story.left is not None]:
                self.running.remove(story)
                self.let_go(story)
            for story in self.running:
                drafts.give(story, env.now)
            self.let_go_of_the_done()

    def let_go(self, story):
        """Its user has left."""
        self.holding.remove(story)
        self.grant()

    def let_go_of_the_done(self):
        done = [story for story in self.running if len(story.tokens) == story.request.output_tokens]
        for story in sorted(done, key=lambda story: story.request.id):
            self.running.remove(story)
            self.holding.remove(story)
            self.model.decode_pool.take(self.number, story.total_tokens)
            self.model.finish(story)
        self.grant()


class StepNetwork:
    """Flows over links, each with what it still has to move; all rates are computed anew at each event."""

    def __init__(self, env, capacities):
        self.env = env
        self.capacities = capacities
        self.flows = []
        self.started = 0
        self.settled = 0
        self.version = 0

    def send(self, parts):
        """Move (bytes, paths that share them) parts; the event happens with the end of the last one."""
        arrived, missing = self.env.event(), [len(parts)]
        self.settle()
        for size, paths in parts:
            self.flows.append([self.started, size, paths, arrived, missing])
            self.started += 1
        self.plan_ends()
        return arrived

    def rates(self):
        rates = iter(fair_rates([path for flow in self.flows for path in flow[2]], self.capacities))
        return [sum(next(rates) for _ in flow[2]) for flow in self.flows]

    def settle(self):
        for flow, rate in zip(self.flows, self.rates(), strict=True):
            flow[1] = max(flow[1] - rate * (self.env.now - self.settled), 0)
        self.settled = self.env.now

    def plan_ends(self):
        """Let a process wait for the end of each flow, as things are now."""
        self.version += 1
        for flow, rate in zip(self.flows, self.rates(), strict=True):
            self.env.process(self.end(flow, self.env.now + -(-flow[1] // rate), self.version))

    def end(self, flow, instant, version):
        yield self.env.at(instant, FLOW_END + flow[0])
        if version != self.version:
            return
        self.settle()
        self.flows.remove(flow)
        flow[4][0] -= 1
        if not flow[4][0]:
            flow[3].succeed()
        self.plan_ends()


class StepDelays:
    """Transfers that never meet: each byte takes a picosecond."""

    def __init__(self, env):
        self.env = env
        self.started = 0

    def send(self, parts):
        [(size, _)] = parts
        self.started += 1
        return self.env.at(self.env.now + size, FLOW_END + self.started)


class StepModel:
    """A plan, requests and wires, played to the end: `stories` by request id, `order` of being done."""

    new_story, new_prefill = Story, StepPrefill

    def __init__(self, plan, requests, wires):
        self.env = Instants()
        self.plan = plan
        self.wires = wires
        self.network = wires.network(self.env)
        self.prefills = [self.new_prefill(self, number) for number in range(len(plan.prefill.seats))]
        self.decodes = [StepDecode(self, number) for number in range(len(plan.decode.seats))]
        caches = [replica.cache for replica in self.prefills] if plan.reuse else None
        form, late = plan.router, {"stale_ps": plan.router.stale_ps, "now": lambda: self.env.now}
        self.prefill_pool = NaivePool(len(self.prefills), caches, plan.block_tokens, form.load_weight, **late)
        self.decode_pool = NaivePool(len(self.decodes), None, 1, form.decode_load_weight, **late)
        for pool, of in ((self.prefill_pool, plan.prefill), (self.decode_pool, plan.decode)):
            pool.spots = list(zip(of.domains, of.units, strict=True))
            pool.dice = Random(f"{form.seed} {of.role}")
        self.stories = {}
        self.order = []
        self.requests = requests
        self.prepare()
        self.env.process(self.arrivals(requests))
        for replica in [*self.prefills, *self.decodes]:
            self.env.process(replica.run())
        self.env.run()

    def prepare(self):
        """What else there is, before anything happens."""

    def blocks(self, story):
        return list(story.request.blocks) if self.plan.reuse else []

    def saved(self, story, hits):
        """Tokens that need no computing; the last one of a prompt always does."""
        return min(hits * self.plan.block_tokens, story.request.input_tokens - 1)

    def arrivals(self, requests):
        for request in requests:
            yield self.env.at(request.arrived_ps, ARRIVAL + request.id)
            story = self.stories[request.id] = self.new_story(request)
            if self.can_never_fit(story):
                story.status = "rejected"
                self.order.append(request.id)
                continue
            if self.plan.router.decode_first:
                self.prefill_pool.near = None
                if not (self.plan.first_token_by_prefill and request.output_tokens == 1):
                    self.choose_decode(story)
                    if self.decode_pool.spots:
                        self.prefill_pool.near = self.decode_pool.spots[story.decode_replica]
            number = self.prefill_pool.choose(self.plan.router.policy, request)
            if story.decode_replica is not None:
                self.decode_pool.give(story.decode_replica, story.total_tokens)
            replica = self.prefills[number]
            hits = replica.cache.cached(self.blocks(story))
            story.prefill_replica = number
            story.estimate = request.input_tokens - self.saved(story, hits)
            self.prefill_pool.give(number, story.estimate)
            replica.queue.append(story)
            replica.tell()
            patience = self.patience(story)
            if patience is not None:
                self.env.process(self.may_leave(story, patience[0], patience[2]))

    def patience(self, story):
        """When the user leaves, and as what."""
        ends = []
        if story.request.cancelled_after_ps >= 0:
            ends.append((story.request.cancelled_after_ps, 1, "cancelled"))
        if self.plan.timeout_ps is not None:
            ends.append((self.plan.timeout_ps, 0, "timed_out"))
        return min(ends, default=None)

    def may_leave(self, story, after_ps, status):
        yield self.env.at(self.env.now + after_ps, ARRIVAL + story.request.id)
        if story.status != "unfinished":
            return
        story.status, story.left = status, self.env.now
        source = self.prefills[story.prefill_replica]
        if story in source.queue:
            source.queue.remove(story)
            self.prefill_pool.take(source.number, story.estimate)
            source.tell()
        if story.decode_replica is not None:
            target = self.decodes[story.decode_replica]
            self.decode_pool.take(target.number, story.total_tokens)
            waiting = [entry for entry in target.wanting if entry[0] is story]
            if waiting:
                target.wanting.remove(waiting[0])
                target.grant()
                source.let_go(story)
            elif story in target.waiting:
                target.waiting.remove(story)
                target.let_go(story)
        self.order.append(story.request.id)

    def can_never_fit(self, story):
        plan, request = self.plan, story.request
        blocks = -(-request.input_tokens // plan.block_tokens)
        pages = -(-story.total_tokens // plan.page_tokens)
        return (
            blocks > plan.prefill.kv_tokens // plan.block_tokens
            or pages > plan.decode.kv_tokens // plan.page_tokens
        )

    def after_prefill(self, story):
        if story.left is not None:
            self.prefills[story.prefill_replica].let_go(story)
            return
        if self.plan.first_token_by_prefill:
            story.tokens.append(self.env.now)
            if story.request.output_tokens == 1:
                self.prefills[story.prefill_replica].let_go(story)
                self.finish(story)
                return
        self.env.process(self.handoff(story))

    def choose_decode(self, story):
        story.decode_replica = self.decode_pool.choose(self.plan.router.decode_policy, story.request)

    def handoff(self, story):
        request = story.request
        if story.decode_replica is None:
            if self.prefill_pool.spots:
                self.decode_pool.near = self.prefill_pool.spots[story.prefill_replica]
            self.choose_decode(story)
            self.decode_pool.give(story.decode_replica, story.total_tokens)
        number = story.decode_replica
        source, target = self.prefills[story.prefill_replica], self.decodes[number]
        yield target.reserve(story)
        story.reserved = self.env.now
        parts, latency_ps = self.wires.split(
            request.input_tokens * self.plan.kv_bytes_per_token,
            self.plan.prefill.seats[source.number],
            self.plan.decode.seats[number],
            self.plan.kv_heads,
        )
        yield self.env.at(self.env.now + latency_ps, FLOW_START + request.id)
        yield self.network.send(parts)
        story.received = self.env.now
        source.let_go(story)
        if story.left is None:
            target.join(story)
        else:
            target.let_go(story)

    def finish(self, story):
        story.status = "finished"
        story.finished = self.env.now
        self.order.append(story.request.id)
