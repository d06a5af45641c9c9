"""What can be measured: each case is a row of a device file without its times.

Sizes are tokens and bytes; a case knows its table and how it is called. Nothing here needs a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from sim.base.errors import UnsupportedError
from sim.catalog.attention import GroupedAttention
from sim.catalog.mlp import DenseMlp
from sim.catalog.model import Model

Row = dict[str, Any]
NUMBER_BYTES = {"bf16": 2, "fp8": 1}


@dataclass(frozen=True, slots=True)
class Shape:
    """The dense transformer whose steps are measured."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int

    @classmethod
    def of(cls, model: Model) -> Shape:
        """The shape of a model of the catalogue; refuses what is not a dense model with grouped heads."""
        attention, mlp = model.stack[0].attention, model.stack[0].mlp
        is_plain = model.family == "llama" and len(model.groups) == 1
        if not (is_plain and isinstance(attention, GroupedAttention) and isinstance(mlp, DenseMlp)):
            raise UnsupportedError(
                f"steps of {model.title}: only dense models with grouped-query attention are measured",
                "--model llama-3.1-8b",
            )
        return cls(
            name=model.name,
            layers=model.layers,
            hidden=model.hidden,
            heads=attention.heads,
            kv_heads=attention.kv_heads,
            head_dim=attention.head_dim,
            intermediate=mlp.inner,
            vocab=model.vocab,
        )

    def kv_token_bytes(self, kv: str) -> int:
        """Bytes of K and V of one token in all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * NUMBER_BYTES[kv]

    def matrix_bytes(self, weights: str) -> int:
        """Bytes of all matrices; embedding and LM head stay in bf16."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        layer = attention + 3 * self.hidden * self.intermediate
        return self.layers * layer * NUMBER_BYTES[weights] + 4 * self.vocab * self.hidden


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure."""

    table: ClassVar[str]

    def row(self) -> Row:
        """Its columns."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [f"{key} {value}" for key, value in self.row().items() if not isinstance(value, list | tuple)]
        return f"{self.table}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class GemmCase(Case):
    """A product of m x k and the transpose of n x k."""

    table: ClassVar[str] = "gemm"
    m: int
    n: int
    k: int
    precision: str


@dataclass(frozen=True, slots=True)
class PrefillAttentionCase(Case):
    """Causal attention of equal prompts in one layer."""

    table: ClassVar[str] = "attention_prefill"
    kernel: str
    heads: int
    kv_heads: int
    head_dim: int
    prompts: int
    new: int
    cached: int


@dataclass(frozen=True, slots=True)
class DecodeAttentionCase(Case):
    """Attention of one token of each sequence in one layer; one context for all, or one for each."""

    table: ClassVar[str] = "attention_decode"
    kernel: str
    heads: int
    kv_heads: int
    head_dim: int
    kv: str
    batch: int
    contexts: tuple[int, ...]

    @property
    def each(self) -> tuple[int, ...]:
        """The context of each sequence."""
        return self.contexts if len(self.contexts) == self.batch else self.contexts * self.batch

    def row(self) -> Row:
        """Its columns, the contexts as a list."""
        return {**asdict(self), "contexts": list(self.contexts)}


@dataclass(frozen=True, slots=True)
class CopyCase(Case):
    """A copy of memory."""

    table: ClassVar[str] = "copies"
    direction: str
    bytes: int


@dataclass(frozen=True, slots=True)
class AllReduceCase(Case):
    """A sum over the GPUs of the node."""

    table: ClassVar[str] = "all_reduce"
    gpus: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StepSet:
    """A model in its precisions, of which whole steps are measured."""

    shape: Shape
    weights: str
    kv: str
    page_tokens: int

    @property
    def name(self) -> str:
        """How the set is called in a file."""
        kv = "" if self.kv == self.weights else f"-kv-{self.kv}"
        return f"{self.shape.name.replace('.', '-')}-{self.weights}{kv}"


@dataclass(frozen=True, slots=True)
class StepCase(Case, ABC):
    """A whole step of a model; `table` is the list of the set of steps that it belongs to."""

    of: StepSet

    def row(self) -> Row:
        """Its columns, without the model that all of the set share."""
        columns = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "of"}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in columns.items()}

    def __str__(self) -> str:
        parts = [f"{key} {value}" for key, value in self.row().items() if not isinstance(value, list)]
        return f"{self.of.name} {self.table}: {', '.join(parts) or self.tokens}"

    @property
    @abstractmethod
    def tokens(self) -> int:
        """Tokens of KV that have to fit the memory."""


@dataclass(frozen=True, slots=True)
class PrefillCase(StepCase):
    """A prefill of equal prompts."""

    table: ClassVar[str] = "prefill"
    prompts: int
    new: int
    cached: int

    @property
    def tokens(self) -> int:
        """Tokens of KV that have to fit the memory."""
        return self.prompts * (self.new + self.cached)


@dataclass(frozen=True, slots=True)
class DecodeCase(StepCase):
    """A decode step of equal sequences."""

    table: ClassVar[str] = "decode"
    batch: int
    context: int

    @property
    def tokens(self) -> int:
        """Tokens of KV that have to fit the memory."""
        return self.batch * self.context

    @property
    def each(self) -> tuple[int, ...]:
        """The context of each sequence."""
        return (self.context,) * self.batch


@dataclass(frozen=True, slots=True)
class RaggedCase(StepCase):
    """A decode step of sequences of different lengths."""

    table: ClassVar[str] = "ragged"
    contexts: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Tokens of KV that have to fit the memory."""
        return sum(self.contexts)

    @property
    def each(self) -> tuple[int, ...]:
        """The context of each sequence."""
        return self.contexts
