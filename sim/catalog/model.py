"""A model: its shapes, and the bytes that follow from them.

Dense decoder-only transformers with grouped-query attention and a gated MLP (the Llama family). Other
families will come as further values of `family` with the keys that they need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sim.base.errors import UnknownNameError
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields

PRECISION_BYTES: Mapping[str, int] = {"bf16": 2, "fp8": 1}
UNQUANTISED_BYTES = 2  # embeddings, LM head and norms stay in bf16 in quantised checkpoints


def precision_bytes(precision: str) -> int:
    """Bytes of one number in a precision."""
    if precision not in PRECISION_BYTES:
        raise UnknownNameError("precision", precision, PRECISION_BYTES)
    return PRECISION_BYTES[precision]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model(Entry):
    """A model's shapes, as in its config.json."""

    family: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    max_context: int
    tied_embeddings: bool

    @classmethod
    def read(cls, fields: Fields) -> Model:
        """Read an entry of models.yaml."""
        return cls(
            **fields.identity(),
            family=fields.text("family", ("llama",)),
            layers=fields.count("layers"),
            hidden=fields.count("hidden"),
            heads=fields.count("heads"),
            kv_heads=fields.count("kv_heads"),
            head_dim=fields.count("head_dim"),
            intermediate=fields.count("intermediate"),
            vocab=fields.count("vocab"),
            max_context=fields.count("max_context"),
            tied_embeddings=fields.flag("tied_embeddings"),
        )

    @property
    def summary(self) -> str:
        """Title, parameters, layers and KV bytes."""
        kv_kib = self.kv_bytes_per_token("bf16") / 1024
        return (
            f"{self.title}, {self.parameters / 1e9:.1f} B parameters, {self.layers} layers, "
            f"{self.heads}/{self.kv_heads} heads of {self.head_dim}, KV {kv_kib:g} KiB per token in BF16"
        )

    @property
    def layer_parameters(self) -> int:
        """Parameters of the matrices of one layer."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding and the LM head, counted once where they are tied."""
        return self.vocab * self.hidden * (1 if self.tied_embeddings else 2)

    @property
    def norm_parameters(self) -> int:
        """Parameters of the norms: two in each layer and one at the end."""
        return (2 * self.layers + 1) * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.layers * self.layer_parameters + self.embedding_parameters + self.norm_parameters

    def kv_heads_per_gpu(self, tp: int) -> int:
        """KV heads that each GPU holds; beyond one GPU per head, heads are replicated."""
        return -(-self.kv_heads // tp)

    def kv_bytes_per_token(self, precision: str, tp: int = 1) -> int:
        """Bytes of K and V of one token in all layers, summed over the GPUs of a replica.

        With `tp` above the number of KV heads this counts the copies; with the default it is what has to be
        moved or stored once.
        """
        return tp * self.kv_bytes_per_token_per_gpu(precision, tp)

    def kv_bytes_per_token_per_gpu(self, precision: str, tp: int) -> int:
        """Bytes of K and V of one token in all layers on each GPU of a replica."""
        return 2 * self.layers * self.kv_heads_per_gpu(tp) * self.head_dim * precision_bytes(precision)

    def weight_bytes(self, precision: str, tp: int = 1) -> int:
        """Bytes of the weights of a whole replica; KV projections are copied where KV heads are."""
        copied_heads = tp * self.kv_heads_per_gpu(tp) - self.kv_heads
        copied = 2 * self.hidden * self.head_dim * copied_heads
        matrices = self.layers * (self.layer_parameters + copied) * precision_bytes(precision)
        return matrices + (self.embedding_parameters + tp * self.norm_parameters) * UNQUANTISED_BYTES
