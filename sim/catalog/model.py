"""A model: a stack of layers between an embedding and an LM head, and the numbers that follow from it.

Shapes are read from a config.json (sim.catalog.huggingface), of the catalogue or of the user. Counted are the
layers of the language model; towers for images and sound and layers that only predict further tokens are
named in `left_out`. Bytes of weights are those of a replica: matrices are split by tensor parallelism, norms,
biases and what is not split are whole on every GPU, and KV projections are copied where KV heads are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sim.catalog.entry import Entry
from sim.catalog.fields import Fields
from sim.catalog.huggingface.read import shapes
from sim.catalog.layer import Layer
from sim.catalog.precision import HALVES, NATIVE, UNQUANTISED, kv_number_bytes, precision
from sim.catalog.sheet import sheet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model(Entry):
    """A model. `native` is the precision of its checkpoint, of which some parts may be kept in bf16.

    `groups` are its different layers in order of their first appearance, each with its number. `published`
    are the totals that its authors print.
    """

    family: str
    hidden: int
    vocab: int
    max_context: int
    tied_embeddings: bool
    stack: tuple[Layer, ...]
    native: str = UNQUANTISED
    left_out: tuple[str, ...] = ()
    published: Mapping[str, float] = field(default_factory=dict)
    groups: tuple[tuple[Layer, int], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        numbers = Counter(map(id, self.stack))  # most equal layers are one object
        counts: dict[Layer, int] = {}
        for layer in {id(layer): layer for layer in self.stack}.values():
            counts[layer] = counts.get(layer, 0) + numbers[id(layer)]
        object.__setattr__(self, "groups", tuple(counts.items()))

    @classmethod
    def read(cls, fields: Fields) -> Model:
        """Read an entry of models.yaml."""
        identity = fields.identity()
        config = sheet(fields, "config")
        published = fields.table("published", "count") if fields.has("published") else {}
        return cls(**identity, **shapes(config), published=published)

    @property
    def summary(self) -> str:
        """Title, parameters, layers and KV bytes."""
        total, active = self.parameters / 1e9, self.active_parameters / 1e9
        parts = [self.title, f"{total:.1f} B parameters"]
        if self.idle_parameters:
            parts.append(f"{active:.1f} B active")
        parts.append(f"{self.layers} layers")
        parts += self._attention_labels
        parts.append(f"KV {self.kv_bytes_per_token('bf16') / 1024:.4g} KiB per token in BF16")
        return ", ".join(parts)

    @property
    def _attention_labels(self) -> list[str]:
        """The kinds of attention, with their numbers of layers where there are several."""
        counts: dict[str, int] = {}
        for layer, count in self.groups:
            if layer.attention is not None:
                counts[layer.attention.label] = counts.get(layer.attention.label, 0) + count
        if len(counts) == 1 and sum(counts.values()) == self.layers:
            return list(counts)
        return [f"{count} with {label}" for label, count in counts.items()]

    @property
    def layers(self) -> int:
        """Layers of the stack."""
        return len(self.stack)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding and the LM head, counted once where they are tied."""
        return self.vocab * self.hidden * (1 if self.tied_embeddings else 2)

    @property
    def small_parameters(self) -> int:
        """Parameters outside of matrices, the last norm included."""
        return sum(count * layer.small_parameters for layer, count in self.groups) + self.hidden

    @property
    def matrix_parameters(self) -> int:
        """Parameters of the matrices of all layers."""
        return sum(count * matrix.parameters for layer, count in self.groups for matrix in layer.matrices(1))

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.matrix_parameters + self.embedding_parameters + self.small_parameters

    @property
    def idle_parameters(self) -> int:
        """Parameters of the experts that do not work on a token."""
        return sum(count * layer.idle_parameters for layer, count in self.groups)

    @property
    def active_parameters(self) -> int:
        """Parameters that work on a token: no idle experts, and no table that is only looked up."""
        looked_up = 0 if self.tied_embeddings else self.vocab * self.hidden
        return self.parameters - self.idle_parameters - looked_up

    @property
    def splits(self) -> Iterator[tuple[int, str]]:
        """Numbers that tensor parallelism must divide, and what they count."""
        for layer, _ in self.groups:
            if layer.attention is not None:
                yield layer.attention.heads, "heads"
            for width in layer.mlp.widths if layer.mlp is not None else ():
                yield width, "columns of an MLP"

    @property
    def main_attention(self) -> Layer | None:
        """The kind of layer that holds most of a long sequence's KV; None where nothing grows."""
        growing = [(layer, count) for layer, count in self.groups if layer.kv_bytes(1, 1)]
        full = [pair for pair in growing if pair[0].attention and pair[0].attention.reach.limit is None]
        return max(full or growing, key=lambda pair: pair[1] * pair[0].kv_bytes(1, 1), default=(None, 0))[0]

    @property
    def kv_heads(self) -> int:
        """Parts in which KV is dealt out over GPUs: KV heads, or 1 where every GPU holds all of it."""
        main = self.main_attention
        return main.attention.kv_heads if main is not None and main.attention is not None else 1

    def kv_bytes_per_token_per_gpu(self, name: str, tp: int) -> int:
        """Bytes of KV of one token in all layers on each GPU of a replica, while it is in reach of all."""
        number_bytes = kv_number_bytes(name)
        return sum(count * layer.kv_bytes(number_bytes, tp) for layer, count in self.groups)

    def kv_bytes_per_token(self, name: str, tp: int = 1) -> int:
        """The same summed over the GPUs of a replica.

        With `tp` above the number of KV heads this counts the copies; with the default it is what has to be
        moved or stored once.
        """
        return tp * self.kv_bytes_per_token_per_gpu(name, tp)

    def kv_bytes(self, tokens: int, name: str, tp: int = 1) -> int:
        """Bytes of KV and states of a sequence of so many tokens, summed over the GPUs of a replica.

        What has left every window or chunk does not count.
        """
        number_bytes = kv_number_bytes(name)
        held = sum(
            count * layer.kv_bytes(number_bytes, tp) * layer.attention.reach.held(tokens)
            for layer, count in self.groups
            if layer.attention is not None
        )
        return tp * (held + self.state_bytes_per_gpu(tp))

    def kv_limits(self, name: str) -> tuple[tuple[int, int], ...]:
        """For each limit to how far layers look back, the bytes of a token that stop to grow there."""
        number_bytes, found = kv_number_bytes(name), dict[int, int]()
        for layer, count in self.groups:
            limit = layer.attention.reach.limit if layer.attention is not None else None
            if limit is not None:
                found[limit] = found.get(limit, 0) + count * layer.kv_bytes(number_bytes, 1)
        return tuple(sorted(found.items()))

    def state_bytes_per_gpu(self, tp: int) -> int:
        """Bytes of the states of a sequence on each GPU, however long it is."""
        return sum(count * layer.state_bytes(tp) for layer, count in self.groups)

    def format(self, weights: str) -> str:
        """The precision that is meant: `native` stands for that of the checkpoint."""
        name = self.native if weights == NATIVE else weights
        precision(name)
        return name

    def numbers(self, weights: str, tp: int = 1) -> dict[str, int]:
        """Numbers in the weights of a replica by the precision that they are in."""
        name = self.format(weights)
        rest = name if name in HALVES else UNQUANTISED
        found = {name: 0, rest: self.embedding_parameters + tp * self.small_parameters}
        for layer, count in self.groups:
            for matrix in layer.matrices(tp):
                found[name if layer.is_quantised(matrix) else rest] += tp * count * matrix.parameters
        return found

    def weight_bytes(self, weights: str, tp: int = 1) -> int:
        """Bytes of the weights of a whole replica."""
        return sum(precision(name).size_bytes(count) for name, count in self.numbers(weights, tp).items())

    def flops(self, new: int, cached: int = 0) -> int:
        """FLOP of the forward pass of `new` tokens after `cached` ones, with the logits of the last."""
        per_token = 2 * (self.matrix_parameters - self.idle_parameters)
        pairs = sum(
            count * layer.attention.flops_per_pair * layer.attention.reach.doubled_pairs(new, cached)
            for layer, count in self.groups
            if layer.attention is not None
        )
        return per_token * new + pairs // 2 + 2 * self.vocab * self.hidden
