"""Kinds of attention: their weights, and what they keep of the tokens before.

- Grouped-query attention (Ainslie et al., 2023; with as many KV heads as heads multi-head, with one
  multi-query): every KV head keeps a key and a value, which may differ in size. KV heads are dealt out over
  GPUs; beyond one GPU for each they are copied.
- Multi-head latent attention, MLA (DeepSeek-V2, 2024): keeps one latent and one rotary key for all heads,
  whole on every GPU. With an indexer (DeepSeek-V3.2, 2025) a token attends to the `top` best of all tokens
  only, found by small FP8 keys (one 4-byte scale each) that are kept as well.
- Linear attention (gated delta rule, Kimi delta attention, Mamba-2): keeps a state of constant size.

Sizes are those of one layer. `small_parameters` (norms, biases, sinks, convolutions) are whole on every GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sim.catalog.matrix import Matrix, share
from sim.catalog.reach import FULL, Reach

SCALE_BYTES = 4


class Attention(Protocol):
    """What the rest of the catalogue asks of a kind of attention."""

    @property
    def label(self) -> str:
        """The kind for people."""
        ...

    @property
    def heads(self) -> int:
        """Heads that can be dealt out over GPUs."""
        ...

    @property
    def kv_heads(self) -> int:
        """Independent parts of the KV cache; 0 where there is none."""
        ...

    @property
    def reach(self) -> Reach:
        """Whose KV is kept."""
        ...

    @property
    def small_parameters(self) -> int:
        """Parameters outside of matrices."""
        ...

    @property
    def flops_per_pair(self) -> int:
        """FLOP for each pair of query and key, over all heads."""
        ...

    def matrices(self, tp: int) -> tuple[Matrix, ...]:
        """The weights on each of `tp` GPUs."""
        ...

    def kv_numbers(self, tp: int) -> int:
        """Numbers kept of a token on each of `tp` GPUs, in the precision of the cache."""
        ...

    @property
    def kv_other_bytes(self) -> int:
        """Bytes kept of a token on each GPU whatever that precision."""
        ...

    def state_bytes(self, tp: int) -> int:
        """Bytes kept of a sequence on each of `tp` GPUs, however long it is."""
        ...


@dataclass(frozen=True, slots=True)
class GroupedAttention:
    """Grouped-query attention. `has_values` is False where values are the keys before their rotation.

    `is_gated` adds a gate of the size of the output to the query projection. `small_parameters` as above.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    reach: Reach = FULL
    is_gated: bool = False
    has_values: bool = True
    small_parameters: int = 0

    @property
    def label(self) -> str:
        """The heads, and the reach."""
        sizes = f"{self.head_dim}" if self.head_dim == self.value_dim else f"{self.head_dim}/{self.value_dim}"
        within = f" over a {self.reach.label}" if self.reach.limit is not None else ""
        return f"{self.heads}/{self.kv_heads} heads of {sizes}{within}"

    @property
    def flops_per_pair(self) -> int:
        """Scores and weighted values."""
        return 2 * self.heads * (self.head_dim + self.value_dim)

    @property
    def kv_other_bytes(self) -> int:
        """Nothing but keys and values is kept."""
        return 0

    def matrices(self, tp: int) -> tuple[Matrix, ...]:
        """Q, K and V in one product, and the output projection."""
        query = self.heads * self.head_dim + (self.heads * self.value_dim if self.is_gated else 0)
        each = self.head_dim + (self.value_dim if self.has_values else 0)
        joined = share(query, tp) + share(self.kv_heads, tp) * each
        return (
            Matrix("attention", joined, self.hidden),
            Matrix("attention_output", self.hidden, share(self.heads * self.value_dim, tp)),
        )

    def kv_numbers(self, tp: int) -> int:
        """A key and a value for each KV head here."""
        return share(self.kv_heads, tp) * (self.head_dim + self.value_dim)

    def state_bytes(self, tp: int) -> int:
        """None."""
        return 0


@dataclass(frozen=True, slots=True)
class Indexer:
    """The part that picks the tokens to attend to: `heads` queries of `head_dim`, one key, `top` tokens.

    `is_shared` where a layer takes over the choice of the one before: no weights, no keys.
    """

    heads: int
    head_dim: int
    top: int
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention. `query_rank` is None where queries are not compressed."""

    hidden: int
    heads: int
    query_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    indexer: Indexer | None = None

    @property
    def label(self) -> str:
        """The ranks, and the indexer."""
        index = f" over the best {self.indexer.top} tokens" if self.indexer is not None else ""
        return f"MLA of {self.heads} heads on a latent of {self.kv_rank}+{self.rope_dim}{index}"

    @property
    def kv_heads(self) -> int:
        """One latent for all heads."""
        return 1

    @property
    def reach(self) -> Reach:
        """All latents are kept, also where few of them are chosen."""
        return FULL

    @property
    def own_indexer(self) -> Indexer | None:
        """The indexer if this layer runs one."""
        return None if self.indexer is None or self.indexer.is_shared else self.indexer

    @property
    def flops_per_pair(self) -> int:
        """Scores and weighted values in the expanded form, in which prompts are computed."""
        return 2 * self.heads * (self.nope_dim + self.rope_dim + self.value_dim)

    @property
    def absorbed_flops_per_pair(self) -> int:
        """The same in the absorbed form, in which each head works on the latent itself."""
        return 2 * self.heads * (2 * self.kv_rank + self.rope_dim)

    @property
    def small_parameters(self) -> int:
        """Norms of the latents, and the indexer's norm with its bias."""
        index = 2 * self.own_indexer.head_dim if self.own_indexer is not None else 0
        return (self.query_rank or 0) + self.kv_rank + index

    @property
    def kv_other_bytes(self) -> int:
        """The indexer's key."""
        return self.own_indexer.head_dim + SCALE_BYTES if self.own_indexer is not None else 0

    @property
    def down(self) -> Matrix:
        """What makes the latents, whole on every GPU; uncompressed queries need none."""
        return Matrix("attention", (self.query_rank or 0) + self.kv_rank + self.rope_dim, self.hidden)

    def query(self, tp: int) -> Matrix:
        """What makes queries."""
        outputs = share(self.heads, tp) * (self.nope_dim + self.rope_dim)
        return Matrix("attention", outputs, self.query_rank or self.hidden)

    def key_up(self, tp: int) -> Matrix:
        """What expands a latent into keys, one matrix for each head."""
        return Matrix("attention", self.nope_dim, self.kv_rank, share(self.heads, tp))

    def value_up(self, tp: int) -> Matrix:
        """What expands a latent into values, one matrix for each head."""
        return Matrix("attention", self.value_dim, self.kv_rank, share(self.heads, tp))

    def output(self, tp: int) -> Matrix:
        """The output projection."""
        return Matrix("attention_output", self.hidden, share(self.heads, tp) * self.value_dim)

    def index(self) -> tuple[Matrix, ...]:
        """The indexer's queries, and its key and head weights, whole on every GPU."""
        own = self.own_indexer
        if own is None:
            return ()
        return (
            Matrix("attention", own.heads * own.head_dim, self.query_rank or self.hidden),
            Matrix("attention", own.head_dim + own.heads, self.hidden),
        )

    def matrices(self, tp: int) -> tuple[Matrix, ...]:
        """All of the above."""
        ups = (self.key_up(tp), self.value_up(tp))
        return (self.down, self.query(tp), *ups, *self.index(), self.output(tp))

    def kv_numbers(self, tp: int) -> int:
        """The latent and the rotary key, on every GPU."""
        return self.kv_rank + self.rope_dim

    def state_bytes(self, tp: int) -> int:
        """None."""
        return 0


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Attention through a state of `heads` matrices of key_dim x value_dim.

    `inputs` are the outputs of the projections that read the hidden vector and are split by head, `low_rank`
    the sizes of products through a bottleneck (whole in, split out), `conv_channels` run through a short
    convolution of `conv_taps`. Numbers of the state have `state_number_bytes`, those of the convolution two.
    """

    rule: str
    hidden: int
    heads: int
    key_dim: int
    value_dim: int
    inputs: int
    conv_channels: int
    conv_taps: int
    state_number_bytes: int
    chunk: int
    small_parameters: int
    low_rank: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> str:
        """The rule, and the state."""
        return f"{self.rule} with {self.heads} states of {self.key_dim}x{self.value_dim}"

    @property
    def kv_heads(self) -> int:
        """Nothing grows."""
        return 0

    @property
    def reach(self) -> Reach:
        """Everything, through the state."""
        return FULL

    @property
    def flops_per_pair(self) -> int:
        """There are no pairs."""
        return 0

    @property
    def kv_other_bytes(self) -> int:
        """Nothing is kept of a token."""
        return 0

    @property
    def flops_per_token(self) -> int:
        """Within a chunk as causal attention, between chunks through the state: read, correct and write."""
        within = self.chunk * (self.key_dim + self.value_dim)
        return self.heads * (within + 6 * self.key_dim * self.value_dim)

    def matrices(self, tp: int) -> tuple[Matrix, ...]:
        """Input projections, bottlenecks, and the output projection."""
        narrow = [
            matrix
            for middle, outputs in self.low_rank
            for matrix in (
                Matrix("attention", middle, self.hidden),
                Matrix("attention", share(outputs, tp), middle),
            )
        ]
        out = Matrix("attention_output", self.hidden, share(self.heads * self.value_dim, tp))
        return (Matrix("attention", share(self.inputs, tp), self.hidden), *narrow, out)

    def kv_numbers(self, tp: int) -> int:
        """None."""
        return 0

    def state_bytes(self, tp: int) -> int:
        """The states here, and the last inputs of the convolution."""
        state = share(self.heads, tp) * self.key_dim * self.value_dim * self.state_number_bytes
        return state + share(self.conv_channels, tp) * (self.conv_taps - 1) * 2
