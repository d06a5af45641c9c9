"""The serving path with a pool of KV blocks, step by step: the model of `stepping`, and what a pool adds.

Written from the documentation. What is cached where is in lists (models.pool), the network is computed anew
at each event (models.poolflows). A place is (tier, node). Ignores: copies by bottleneck, and rebalancing.
"""

from models.pool import NaivePool
from models.stepping import FLOW_START, TIMER, StepModel, StepPrefill, Story
from sim.network.fabric import Port

DRAM, NVME = 0, 1


class PoolStory(Story):
    """A request, with what it found and fetched; `users` of its blocks in HBM are not done yet."""

    def __init__(self, request):
        super().__init__(request)
        self.hbm_tokens = self.fetched_tokens = self.remote_tokens = 0
        self.exposed = self.fetch_hidden = self.spared = 0
        self.wanted = self.source = None
        self.keeps_copy = False
        self.known = 0
        self.users = 1
        self.is_leaving = False
        self.paced = []
        self.streamed = None

    @property
    def transfer_hidden(self):
        return 0 if self.streamed is None else self.computed - self.streamed


class PoolStepPrefill(StepPrefill):
    """A prefill replica that fetches, streams and saves."""

    def run(self):
        env, model = self.model.env, self.model
        while True:
            batch = self.take_batch()
            if not batch:
                self.news = env.event()
                yield self.news
                yield env.soon(TIMER + self.number)
                continue
            began = env.now
            done = began + self.computing(batch)
            wanting = [story for story in batch if story.wanted is not None]
            if wanting:
                yield from self.fetch(wanting)
                done = began + self.make_up(batch, env.now - began)
            self.leave(batch, done)
            yield env.at(done, TIMER + self.number)
            for story in batch:
                story.computed = env.now
                self.cache.publish(self.holds[story])
                model.prefill_pool.take(self.number, story.estimate)
                model.computed(story, self)
                model.after_prefill(story)

    def computing(self, batch):
        chunks = [(story.request.input_tokens - story.cached_tokens, story.cached_tokens) for story in batch]
        return self.model.plan.prefill.timing.prefill_ps(chunks)

    def take_batch(self):
        batch, model = [], self.model
        budget = model.plan.prefill.max_batch_tokens
        while self.queue and budget > 0:
            story = self.queue[0]
            tokens = story.request.input_tokens
            cached = self.look(story)
            if batch and tokens - cached > budget:
                break
            blocks = model.blocks(story) if model.kv.hbm else []
            hold = self.cache.admit(blocks, -(-tokens // model.plan.block_tokens))
            if hold is None:
                break
            model.write_back(self)
            self.queue.pop(0)
            self.holds[story] = hold
            story.prefill, story.cached_tokens = model.env.now, cached
            batch.append(story)
            budget -= tokens - cached
        return batch

    def look(self, story):
        """Tokens that need no computing: those in HBM, and those that are worth a fetch."""
        model, blocks = self.model, self.model.blocks(story)
        story.wanted, story.spared = None, 0
        hits = self.cache.cached(blocks)
        in_hbm = story.hbm_tokens = model.saved(story, hits) if hits else 0
        where, depth = model.find(blocks, self.node)
        anywhere = max(replica.cache.cached(blocks) for replica in model.prefills)
        story.known = max(hits, anywhere, depth if depth > hits else 0)
        having = model.saved(story, depth) if depth > hits else 0
        if having <= in_hbm or model.kv.fetch == "never":
            return in_hbm
        alone, tokens = model.plan.prefill.timing.prefill_ps, story.request.input_tokens
        anew, rest = alone([(tokens - in_hbm, in_hbm)]), alone([(tokens - having, having)])
        if model.kv.fetch == "estimate" and model.done_after(self.quote(where, depth - hits), rest) >= anew:
            return in_hbm
        story.spared = anew - rest
        story.wanted = where, depth, hits
        return having

    @property
    def port(self):
        return self.model.plan.prefill.seats[self.number].places[0]

    @property
    def node(self):
        return self.port.node

    def quote(self, where, blocks):
        """What a fetch would take if each link gave equal shares to what is there and this."""
        model = self.model
        path = model.way_in(where, self.port)
        capacities = [link.capacity for link in model.wires.table.solver]
        rate = min(
            capacities[link] / (model.network.crossing(link) + path.counted.count(link))
            for link in path.counted
        )
        return model.kv.fetch_start_ps + path.latency_ps + round(blocks * model.block_bytes / rate)

    def fetch(self, wanting):
        """All at once; goes on when the last one is there, or known to be lost."""
        model, env = self.model, self.model.env
        everything, missing = env.event(), [len(wanting)]

        def bring(story):
            where, depth, hits = story.wanted
            cache = model.memory(where)
            has_come = False
            if cache is not None and cache.cached(model.blocks(story)) >= depth:
                hold = cache.hold(model.blocks(story), depth)
                path = model.way_in(where, self.port)
                starts = env.now + model.kv.fetch_start_ps + path.latency_ps
                yield env.at(starts, FLOW_START + story.request.id)
                if where[1] not in model.pool.lost:
                    sent = model.send([((depth - hits) * model.block_bytes, path.counted, None)], where[1])
                    has_come = yield sent
                cache.release(hold)
            if has_come:
                story.source = where
                story.keeps_copy = model.keeps_copy(model.blocks(story)[:depth], where, self.node)
            missing[0] -= 1
            if not missing[0]:
                everything.succeed()

        for story in wanting:
            model.begin(bring(story))
        yield everything

    def make_up(self, batch, fetch):
        """How long the batch takes with a fetch of that length, and what each prompt is told of it."""
        is_broken = False
        for story in batch:
            if story.wanted is not None and story.source is None:
                is_broken = True
                story.cached_tokens, story.spared = story.hbm_tokens, 0
            elif story.source is not None:
                story.fetched_tokens = story.cached_tokens - story.hbm_tokens
                story.remote_tokens = story.fetched_tokens if story.source[1] != self.node else 0
        compute = self.computing(batch)
        whole = fetch + compute if is_broken else self.model.done_after(fetch, compute)
        for story in batch:
            story.exposed = whole - compute
            if story.source is not None:
                story.fetch_hidden = max(fetch - story.exposed, 0)
        return whole

    def leave(self, batch, done):
        """With streams, KV leaves from the first layer on."""
        model, now = self.model, self.model.env.now
        first = now + (done - now) // model.kv.layers
        if not model.kv.streams or first >= done:
            return
        for story in batch:
            story.is_leaving = True
            if model.is_handed_over(story):
                model.begin(model.handoff(story, first, done))
            model.save(story, self, first, done)

    def let_go(self, story):
        story.users -= 1
        if not story.users:
            super().let_go(story)


class PoolStepModel(StepModel):
    """A plan with a pool; `wires` are hosts."""

    new_story, new_prefill = PoolStory, PoolStepPrefill

    def prepare(self):
        self.kv = self.plan.kv
        self.block_bytes = self.kv.rank_block_bytes
        prompts = [list(one.blocks) for one in self.requests]
        self.pool = NaivePool(self.kv.lent, self.kv.eviction, self.kv.ttl_ps, prompts)
        self.moving = {}
        self.coming = {}
        self.skipped = self.broken = self.replicated = 0
        for lost in self.kv.lost:
            self.env.at(lost.at_ps, FLOW_START).callbacks.append(lambda _, node=lost.node: self.lose(node))

    def begin(self, course):
        """Run a process, its first stretch at once."""

        def go_on(happened):
            try:
                event = course.send(None if happened is None else happened.value)
            except StopIteration:
                return
            event.callbacks.append(go_on)

        go_on(None)

    def memory(self, place):
        """The memory at a place, which is told the time."""
        if place not in self.pool.places or place[1] in self.pool.lost:
            return None
        cache = self.pool.caches[self.pool.places.index(place)]
        cache.now = self.env.now
        return cache

    def way_in(self, place, port):
        """From a place to a replica; NVMe of another node goes through its host memory."""
        tier, node = place
        if tier == DRAM:
            return self.wires.dram_to_gpu(node, port)
        if node == port.node:
            return self.wires.nvme_to_gpu(node, port, self.kv.gpudirect_storage)
        return self.wires.nvme_to_dram(node).then(self.wires.dram_to_gpu(node, port))

    def send(self, parts, node):
        sent = self.network.send(parts)
        self.moving[sent] = node
        sent.callbacks.append(lambda _: self.moving.pop(sent))
        return sent

    def lose(self, node):
        self.pool.lose(node)
        for sent in [sent for sent, of in self.moving.items() if of == node and not sent.triggered]:
            self.network.cancel(sent)

    def find(self, blocks, node):
        """The longest prefix: here if nobody has more, else where the NIC sends the fewest flows."""
        if not blocks:
            return None, 0
        self.pool.match(self.env.now)
        depth, where = self.pool.here(node, blocks)
        longest, holders = self.pool.longest(blocks)
        if self.kv.is_shared and longest > depth:
            having = [self.pool.places[holder] for holder in holders]
            sending = {one: self.network.crossing(self.wires.number("nic_tx", one[1])) for one in having}
            return min(having, key=lambda one: (one[0], sending[one], one[1])), longest
        return where, depth

    def done_after(self, fetch, compute):
        """Layer by layer either the last layer waits for its KV, or all wait for that of the first."""
        if not self.kv.overlaps:
            return fetch + compute
        layers = self.kv.layers
        return max(fetch + compute // layers, fetch // layers + compute)

    def keeps_copy(self, blocks, where, own):
        if where[1] == own:
            return True
        longest, holders = self.pool.longest(blocks)
        copies = len(holders) if longest == len(blocks) else 0
        if self.kv.max_copies is not None and copies >= self.kv.max_copies:
            return False
        return self.kv.replicate == "always"

    def is_handed_over(self, story):
        return not (self.plan.first_token_by_prefill and story.request.output_tokens == 1)

    def computed(self, story, replica):
        if story.is_leaving:
            for sent in story.paced:
                if not sent.triggered:
                    self.network.lift(sent)
        else:
            self.save(story, replica, self.env.now, self.env.now)

    def after_prefill(self, story):
        if self.plan.first_token_by_prefill:
            story.tokens.append(self.env.now)
            if story.request.output_tokens == 1:
                self.prefills[story.prefill_replica].let_go(story)
                self.finish(story)
                return
        if not story.is_leaving:
            self.begin(self.handoff(story, 0, 0))

    def paced(self, story, size, path, done, node=None):
        """Send at the rate at which bytes come to be until `done`, if that is still ahead."""
        pace, lasts = None, done - self.env.now
        if lasts > 0:
            pace = size * (1.0 - 1.0 / max(self.kv.layers, 2)) / lasts
        parts = [(size, path.counted, pace)]
        sent = self.network.send(parts) if node is None else self.send(parts, node)
        if pace is not None:
            story.paced.append(sent)
        return sent

    def handoff(self, story, first, done):
        request, env = story.request, self.env
        self.choose_decode(story)
        self.decode_pool.give(story.decode_replica, story.total_tokens)
        source, target = self.prefills[story.prefill_replica], self.decodes[story.decode_replica]
        granted = target.reserve(story)
        if not granted.triggered:
            yield granted
        story.reserved = env.now
        path = self.wires.gpu_to_gpu(source.port, self.plan.decode.seats[target.number].places[0])
        yield env.at(max(env.now, first) + path.latency_ps, FLOW_START + request.id)
        if env.now < done:
            story.streamed = env.now
        yield self.paced(story, request.input_tokens * self.plan.kv_bytes_per_token, path, done)
        story.received = env.now
        source.let_go(story)
        target.join(story)

    def save(self, story, replica, first, done):
        """Write what the pool lacks of a prompt, beside where it came from or on the own node."""
        blocks = self.blocks(story)
        if not blocks:
            return
        story.users += 1
        if self.kv.write == "second_use":
            blocks = blocks[: story.known]
        node = replica.node
        if self.kv.write == "back":
            blocks = []
        if story.source is not None and not story.keeps_copy and story.source[1] not in self.pool.lost:
            node = story.source[1]
        self.begin(self.write(story, replica, blocks, node, first, done))

    def write(self, story, replica, blocks, node, first, done):
        env, cache = self.env, self.memory((DRAM, node))
        hold = self.take((DRAM, node), blocks)
        if hold is not None:
            is_there, had, new = True, len(hold.held), len(hold.new)
            if new:
                size = new * self.block_bytes
                path = self.wires.gpu_to_dram(Port(replica.node, 0), node)
                yield env.at(max(env.now, first) + path.latency_ps, FLOW_START + story.request.id)
                is_there = False
                if node not in self.pool.lost:
                    is_there = yield self.paced(story, size, path, done, node)
            if is_there and new:
                cache.now = env.now
                cache.publish(hold)
                if story.keeps_copy and story.source[1] != node:
                    self.replicated += had < story.wanted[1]
            cache.release(hold)
        replica.let_go(story)

    def take(self, place, blocks):
        """Take room for blocks; what host memory evicts then goes down."""
        cache = self.memory(place)
        if cache is None or not blocks:
            return None
        self.pool.match(self.env.now)
        hold = cache.admit(blocks, len(blocks))
        self.skipped += hold is None
        tier, node = place
        below = (NVME, node)
        for prefix, _ in self.pool.pieces_of(cache):
            if tier == DRAM and below in self.pool.places:
                self.begin(self.move(below, prefix, self.wires.dram_to_nvme(node)))
        return hold

    def write_back(self, replica):
        """What HBM has evicted is written to host memory, where that is when it is written."""
        for prefix, _ in self.pool.pieces_of(replica.cache):
            if self.kv.write == "back":
                place = DRAM, replica.node
                self.begin(self.move(place, prefix, self.wires.gpu_to_dram(replica.port, replica.node)))

    def move(self, place, blocks, path):
        """Write to a place what is neither there nor on its way there; all of it is found at once."""
        env = self.env
        if (place, blocks[-1]) in self.coming:
            return
        hold = self.take(place, blocks)
        if hold is None:
            return
        others = [self.coming[place, block] for block in hold.new if (place, block) in self.coming]
        own = [block for block in hold.new if (place, block) not in self.coming]
        there, is_there = env.event(), True
        self.coming |= {(place, block): there for block in own}
        if own:
            yield env.at(env.now + path.latency_ps, FLOW_START)
            is_there = False
            if place[1] not in self.pool.lost:
                is_there = yield self.send([(len(own) * self.block_bytes, path.counted, None)], place[1])
        cache = self.pool.caches[self.pool.places.index(place)]
        if is_there:
            for other in others:
                if not other.processed:
                    yield other
            cache.now = env.now
            cache.publish(hold)
        cache.release(hold)
        for block in own:
            del self.coming[place, block]
        there.succeed()
