"""A colocated replica that takes one step after the other, written from the documentation of the rules.

No events and no closed form: a loop over steps, lists of requests, and memory that is counted by adding up
what each of them has. To be obviously right and nothing else. Where there is host memory, a copy takes a
latency and a picosecond a byte: nothing else is on its way. Drafted tokens are looked at as in
models.drafting.
"""

from models.drafting import Drafts


class Guest:
    """A request at a replica: `left` tokens to compute, `pages` that it has, `tokens` when each came."""

    def __init__(self, request):
        self.request = request
        self.left = 0
        self.pages = self.kept = 0
        self.tokens = []
        self.began = self.computed = self.decoding = None
        self.aside = None
        self.aside_before = self.aside_after = 0

    @property
    def context(self):
        return self.request.input_tokens + len(self.tokens)

    def take_time_off(self, now):
        spent = now - self.aside
        self.aside = None
        if self.computed is None:
            self.aside_before += spent
        else:
            self.aside_after += spent


class StepMixed:
    """One replica of a pool, with the requests that go to it, played to the end."""

    def __init__(self, pool, page_tokens, requests, latency=0, speculation=None):
        self.pool, self.page_tokens, self.latency = pool, page_tokens, latency
        self.drafts = Drafts(speculation)
        self.rule, self.batching, self.host = pool.batching.rule, pool.batching, pool.host
        self.coming = [Guest(request) for request in requests]
        self.waiting, self.inside, self.done = [], [], []
        self.mixes = self.rule in ("chunked", "mixed")
        self.lengths = set()
        self.is_changed = False
        self.preemptions = self.swapped = self.decode_steps = self.now = self.fullest = 0
        self.let_in_order = []
        while self.coming or self.waiting or self.inside:
            while self.coming and self.coming[0].request.arrived_ps <= self.now:
                self.waiting.append(self.coming.pop(0))
            if not self.waiting and not self.inside:
                self.now = self.coming[0].request.arrived_ps
                continue
            self.step()

    # The order of requests.

    def place(self, guest):
        request = guest.request
        first = {"fcfs": 0, "shortest_prompt": request.input_tokens, "priority": request.priority}
        return first[self.batching.order], request.arrived_ps, request.id

    def next_waiting(self):
        return min(self.waiting, key=self.place)

    # Memory.

    def pages_for(self, tokens):
        return -(-tokens // self.page_tokens)

    def pages_of(self, guest):
        """Pages that it needs for its next step, drafts included, but none beyond its end."""
        request = guest.request
        return self.pages_for(
            min(guest.context + self.drafts.count, request.input_tokens + request.output_tokens)
        )

    def free(self):
        used = sum(guest.pages for guest in self.inside)
        self.fullest = max(self.fullest, used)
        free = self.pool.kv_tokens // self.page_tokens - used
        assert free >= 0
        return free

    def decoders(self):
        return [guest for guest in self.inside if not guest.left]

    def make_room(self):
        """Put requests aside, the last of the order first, until each that decodes has a page to write to."""
        gave_way = False
        while self.decoders():
            wanted = [max(self.pages_of(guest) - guest.pages, 0) for guest in self.decoders()]
            if sum(wanted) <= self.free():
                break
            last = max(self.inside, key=self.place)
            self.inside.remove(last)
            self.waiting.append(last)
            self.keep(last)
            if not last.left:
                self.is_changed = True
                if last.decoding is None:
                    last.decoding = self.now
            last.pages = 0
            if last.aside is None:
                last.aside = self.now
            self.preemptions += 1
            gave_way = True
        return gave_way

    def keep(self, guest):
        """Copy one that decodes to host memory, if there is room; its last token is nowhere yet."""
        swap = self.batching.swap
        if swap is None or guest.left:
            return
        pages = self.pages_for(guest.context - 1)
        if sum(other.kept for other in self.waiting) + pages <= swap.pages:
            guest.kept = pages
            self.swapped += 1
            self.copying += pages

    def fetch(self, guest):
        """Copy one back, if there is room for it and for a step of those that decode; whether there was."""
        wanted = [max(self.pages_of(one) - one.pages, 0) for one in self.decoders()]
        if sum(wanted) > self.free():
            return False
        self.take_pages()
        spare = -(-self.batching.spare_tokens // self.page_tokens) if self.inside else 0
        if self.pages_of(guest) + spare > self.free():
            return False
        self.waiting.remove(guest)
        self.inside.append(guest)
        self.let_in_order.append(guest.request.id)
        guest.pages = self.pages_of(guest)
        self.copying += guest.kept
        guest.kept = 0
        self.fetched.append(guest)
        self.is_changed = True
        return True

    def copy(self):
        """Let everybody wait for what is copied."""
        if self.copying:
            self.now += self.latency + self.copying * self.batching.swap.rank_page_bytes
        for guest in self.fetched:
            guest.take_time_off(self.now)

    def take_pages(self):
        for guest in self.decoders():
            guest.pages = max(guest.pages, self.pages_of(guest))
        self.free()

    # Steps.

    def step(self):
        gave_way = False
        self.copying, self.fetched = 0, []
        if self.mixes:
            gave_way = self.make_room()
            self.take_pages()
        budget = self.pool.max_batch_tokens
        budget -= len(self.decoders()) * self.drafts.width if self.mixes else 0
        chunks = self.under_way(budget)
        if not gave_way:
            chunks += self.let_in(budget - sum(tokens for _, tokens in chunks), bool(chunks))
        if chunks:
            self.copy()
            self.prompts(chunks)
            return
        gave_way = self.make_room() or gave_way
        self.copy()
        if self.decoders():
            self.decode()
        elif not gave_way:
            self.now = self.coming[0].request.arrived_ps

    def under_way(self, budget):
        chunks = []
        for guest in self.inside:
            tokens = min(guest.left, self.batching.chunk_tokens, budget)
            if guest.left and tokens <= 0:
                break
            if guest.left:
                chunks.append((guest, tokens))
                budget -= tokens
        return chunks

    def let_in(self, budget, has_some):
        is_whole = self.rule in ("prefill_first", "static", "mixed")
        chunks = []
        if self.rule == "static" and self.decoders():
            return chunks
        while self.waiting and budget > 0 and len(self.inside) < self.pool.max_sequences:
            guest = self.next_waiting()
            if guest.kept:
                if not self.fetch(guest):
                    break
                budget -= self.mixes * self.drafts.width
                continue
            left = guest.context
            tokens = left if is_whole else min(left, self.batching.chunk_tokens, budget)
            if (chunks or has_some) and tokens > budget:
                break
            total = guest.request.input_tokens + guest.request.output_tokens
            pages = self.pages_for(total) if self.batching.reserves_whole else self.pages_of(guest)
            spare = -(-self.batching.spare_tokens // self.page_tokens) if self.inside else 0
            if pages + spare > self.free():
                break
            self.waiting.remove(guest)
            self.inside.append(guest)
            self.let_in_order.append(guest.request.id)
            guest.left, guest.pages = left, pages
            if guest.began is None:
                guest.began = self.now
            elif guest.computed is None:
                guest.take_time_off(self.now)
            chunks.append((guest, tokens))
            budget -= tokens
        return chunks

    def prompts(self, chunks):
        """A step with prompts; where both are mixed those that decode have a token in it too."""
        pieces = [(tokens, guest.context - guest.left) for guest, tokens in chunks]
        unseen = {tokens for tokens, _ in pieces} - self.lengths
        self.lengths |= unseen
        decoding = self.decoders() if self.mixes else []
        if decoding:
            context = sum(guest.context for guest in decoding)
            took = self.pool.timing.mixed_ps(pieces, len(decoding) * self.drafts.width, context)
            took += self.drafts.drafting_ps(self.pool.timing, len(decoding), context)
        else:
            took = self.pool.timing.prefill_ps(pieces)
        took += self.host.prefill_ps + len(unseen) * self.pool.first_length_ps
        self.give_tokens(decoding, took)
        for guest, tokens in chunks:
            guest.left -= tokens
            if not guest.left:
                self.computed(guest)

    def computed(self, guest):
        guest.tokens.append(self.now)
        if guest.computed is None:
            guest.computed = self.now
        else:
            guest.take_time_off(self.now)
        if len(guest.tokens) == guest.request.output_tokens:
            self.leave(guest)
        else:
            self.is_changed = True

    def decode(self):
        batch = self.decoders()
        self.take_pages()
        context = sum(guest.context for guest in batch)
        took = self.drafts.step_ps(self.pool.timing, len(batch), context) + self.host.step_ps
        self.give_tokens(batch, took + (self.host.change_ps if self.is_changed else 0))

    def give_tokens(self, batch, took):
        """Let a step pass in which these have a token each."""
        for guest in batch:
            if guest.decoding is None:
                guest.decoding = self.now
        self.now += took
        if batch:
            self.decode_steps += 1
            self.is_changed = False
        for guest in sorted(batch, key=lambda guest: guest.request.id):
            self.drafts.give(guest, self.now)
            if len(guest.tokens) == guest.request.output_tokens:
                self.leave(guest)
                self.is_changed = True

    def leave(self, guest):
        self.inside.remove(guest)
        self.done.append(guest)
