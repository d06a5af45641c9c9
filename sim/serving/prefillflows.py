"""What moves to and from a prefill replica around its batches: cached KV in, computed KV out.

Model: a batch begins to fetch what it wants of the pool when it is admitted. Layer by layer it is computed
meanwhile, else afterwards; what its prompts wait for beyond the computing itself is their `kv_fetch`. KV
leaves for the decode side and for the pool when the prompt is computed, or, streamed, from the first layer
on.
A fetch that is broken off is made up for by computing: the batch then begins when that is known.
Units: picoseconds, tokens.
Ignores: that the first layers of a broken batch may be done already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim.kvpool.pool import DRAM, NVME, Place
from sim.network.flow import Transfer
from sim.serving.handoff import Handoff
from sim.serving.job import UNFINISHED, Job
from sim.serving.kvfetch import Fetch, Found, Wanted
from sim.serving.kvmoves import KvMoves
from sim.serving.kvsave import Save
from sim.serving.plan import Seat
from sim.workload.request import Request

if TYPE_CHECKING:
    from sim.serving.prefill import PrefillPool, PrefillReplica

Chunks = list[tuple[int, int]]


class PrefillFlows:
    """Fetches for batches of a prefill pool, and sends and saves what they compute."""

    def __init__(self, pool: PrefillPool, moves: KvMoves, handoff: Handoff) -> None:
        self.pool = pool
        self.moves = moves
        self.plan = moves.plan
        self.handoff = handoff
        self.fetching = Fetch(moves)
        self.saving = Save(moves)
        if self.plan.write == "back":
            for replica in pool.replicas:
                replica.memory.evicted = self.saving.write_back(replica.seat)

    def look(self, job: Job, replica: PrefillReplica) -> int:
        """How many tokens of a prompt need no computing here and now, fetched ones included.

        A prompt that has to wait is looked at again, and what was found before means nothing then.
        """
        job.wanted = job.match = None
        job.hbm_tokens = job.fetch_spared_ps = 0
        job.is_recomputed = False
        blocks, saved = job.blocks, self.pool.tokens_saved
        if not blocks:
            return 0
        hits = 0
        if self.plan.hbm:
            job.match = self.pool.tree.match(blocks)
            hits = job.match.depth(replica.number)
        in_hbm = job.hbm_tokens = saved(job, hits) if hits else 0
        found = self.fetching.find(blocks, replica.seat, hits)
        if self.plan.write == "second_use":
            by_anyone = self.pool.tree.match(blocks).longest()[0]
            job.known_blocks = max(hits, by_anyone, found.blocks if found else 0)
        having = saved(job, found.blocks) if found else 0
        if found is None or having <= in_hbm or self.plan.fetch == "never":
            return in_hbm
        tokens, prefill_ps = job.request.input_tokens, self.moves.timing.prefill_ps
        anew_ps = prefill_ps(((tokens - in_hbm, in_hbm),))
        rest_ps = prefill_ps(((tokens - having, having),))
        if not self.fetching.is_worth(replica.seat, found, hits, anew_ps, rest_ps):
            job.is_recomputed = True
            return in_hbm
        job.fetch_spared_ps = anew_ps - rest_ps
        job.wanted = Wanted(job, found, hits)
        return having

    def fetch(self, batch: Sequence[Job], seat: Seat) -> Transfer | None:
        """Begin to fetch what the jobs of a batch want; None where that is nothing."""
        self.moves.counts["recomputed"] += sum([job.is_recomputed for job in batch])
        wanted = [job.wanted for job in batch if job.wanted is not None]
        return self.fetching.begin(wanted, seat) if wanted else None

    def fetched(
        self, batch: Sequence[Job], replica: PrefillReplica, began_ps: int, compute_ps: int
    ) -> tuple[Chunks, int]:
        """All that was wanted is there or lost: the chunks as they are now, and when they are computed."""
        now = self.moves.clock.now
        is_broken, hoped = False, _chunks(batch)
        for job in batch:
            if job.wanted is not None and job.source is None:
                is_broken = True
                job.cached_tokens = job.hbm_tokens
                job.fetch_spared_ps = 0
            elif job.source is not None:
                self._credit(job, replica.seat)
        chunks = _chunks(batch)
        if is_broken:  # what the batch costs besides stays
            compute_ps += self.moves.timing.prefill_ps(chunks) - self.moves.timing.prefill_ps(hoped)
        fetch_ps = now - began_ps
        whole_ps = fetch_ps + compute_ps
        if not is_broken:
            whole_ps = self.fetching.done_after_ps(fetch_ps, compute_ps)
        exposed_ps = whole_ps - compute_ps
        for job in batch:
            job.exposed_ps = exposed_ps
            if job.source is not None:
                job.fetch_hidden_ps = max(fetch_ps - exposed_ps, 0)
        return chunks, began_ps + whole_ps

    def leave(self, batch: Sequence[Job], replica: PrefillReplica, done_ps: int) -> None:
        """A batch will be computed at an instant: its KV leaves as its layers are, where it is streamed."""
        if not self.plan.streams:
            return
        now = self.moves.clock.now
        from_ps = now + (done_ps - now) // self.plan.layers
        if from_ps >= done_ps:
            return
        for job in batch:
            if job.status != UNFINISHED:
                continue  # its user has left
            job.is_leaving = True
            if self.handoff.is_needed(job):
                self.handoff.begin(job, from_ps, done_ps)
            if job.blocks and self.plan.lent:
                job.users += 1
                self.saving.begin(job, replica.seat, replica.release, (from_ps, done_ps))

    def warm(self, request: Request, seat: Seat, hits: int) -> None:
        """Put the blocks of an earlier prompt where serving it would have left them; nothing moves.

        Its replica had `hits` blocks in HBM. Those of a prefix too short to be worth fetching do not draw the
        rest to their node.
        """
        if not request.blocks or self.plan.write != "through":
            return
        node = seat.nodes[0]
        if self.plan.replicate != "always":
            found = self.fetching.find(request.blocks, seat, hits)
            if found is not None and found.place.node != node and self._is_worth(request, seat, found, hits):
                node = found.place.node
        self.saving.put(Place(DRAM, node), request.blocks)

    def _is_worth(self, request: Request, seat: Seat, found: Found, hits: int) -> bool:
        """Whether a prompt would have been fetched from where it was found."""
        if self.plan.fetch == "never":
            return False
        most = request.input_tokens - 1
        cached, having = (min(blocks * self.pool.block_tokens, most) for blocks in (hits, found.blocks))
        anew_ps, rest_ps = (
            self.moves.timing.prefill_ps(((request.input_tokens - tokens, tokens),))
            for tokens in (cached, having)
        )
        return self.fetching.is_worth(seat, found, hits, anew_ps, rest_ps)

    def computed(self, job: Job) -> None:
        """A prompt is computed: nothing holds back what leaves; what has not begun to leave does now."""
        if job.is_leaving:
            for link in job.capped:
                self.moves.network.lift(link)
            job.capped = ()
            return
        replica = self.pool.replicas[job.prefill_replica]
        if job.blocks and self.plan.lent:
            job.users += 1
            now = self.moves.clock.now
            self.saving.begin(job, replica.seat, replica.release, (now, now))

    def _credit(self, job: Job, seat: Seat) -> None:
        """Note which tier the tokens came from that were fetched."""
        assert job.source is not None
        tokens = job.cached_tokens - job.hbm_tokens
        if job.source.tier == NVME:
            job.nvme_tokens = tokens
        else:
            job.dram_tokens = tokens
        if job.source.node != seat.nodes[0]:
            job.remote_tokens = tokens


def _chunks(batch: Sequence[Job]) -> Chunks:
    """New and cached tokens of each prompt."""
    return [(job.request.input_tokens - job.cached_tokens, job.cached_tokens) for job in batch]
