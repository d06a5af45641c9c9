"""A device file: what was measured on one kind of GPU, by whom, when and how.

`sim calibrate` writes such files; a scenario names one as its source of times. Times are microseconds
(medians over repetitions; `iqr_us` is the distance between their quartiles), sizes are bytes and tokens.
Whole steps of a model are what a replica's times are interpolated from; operators, copies and collectives are
there to fit and to check the roofline.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from sim.base.errors import ValueProblem
from sim.config.form import Form, Name, NamedForm, RootForm, with_own_names

Count = PositiveInt
NumberFormat = Literal["bf16", "fp8"]
WeightFormat = Literal["bf16", "fp8", "fp4", "native"]
Contexts = Annotated[list[PositiveInt], Field(min_length=1)]


class Timed(Form):
    """A row: the median of some repetitions, and how far they lie apart."""

    median_us: PositiveFloat = Field(description="median time in microseconds")
    iqr_us: Annotated[float, Field(ge=0)] | None = Field(
        None, description="distance between the quartiles; none where single times were not kept"
    )
    repetitions: Count | None = Field(None, description="how often it was timed; none where not kept")

    @model_serializer(mode="wrap")
    def _times_last(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What was timed, then how long it took."""
        row = write(self)
        return {**{key: value for key, value in row.items() if key not in Timed.model_fields}, **row}

    @property
    def median_ps(self) -> int:
        """The median in picoseconds."""
        return round(self.median_us * 1e6)


class Gemm(Timed):
    """An m x k matrix times the transpose of an n x k one, output in bf16."""

    m: Count = Field(description="rows: tokens")
    n: Count = Field(description="columns of the product: outputs")
    k: Count = Field(description="length of the sums: inputs")
    precision: NumberFormat = Field(description="precision of both operands")


class Heads(Timed):
    """An attention kernel's shape."""

    kernel: str = Field(description="which kernel: cudnn, flash-2, paged-triton and so on")
    heads: Count = Field(description="query heads")
    kv_heads: Count = Field(description="heads of K and V")
    head_dim: Count = Field(description="length of a head")
    kv: NumberFormat = Field("bf16", description="precision of K and V in memory")


class PrefillAttention(Heads):
    """Causal attention of new tokens over themselves and over cached ones, in one layer."""

    prompts: Count = Field(1, description="equal prompts in the batch")
    new: Count = Field(description="new tokens of each prompt")
    cached: NonNegativeInt = Field(0, description="tokens of each prompt whose K and V are there")


class DecodeAttention(Heads):
    """Attention of one new token of each sequence over its context, in one layer."""

    contexts: Contexts = Field(description="tokens of context, of all sequences or of each")
    batch: Count = Field(description="sequences")

    @model_validator(mode="after")
    def _one_or_all(self) -> DecodeAttention:
        if len(self.contexts) not in {1, self.batch}:
            raise ValueProblem(
                f"{len(self.contexts)} contexts for a batch of {self.batch}",
                "give one context for all sequences, or one for each",
                ["contexts"],
            )
        return self


class Copy(Timed):
    """A copy of memory; `host` is pinned, `peer` another GPU of the node."""

    direction: Literal["device-device", "host-device", "device-host", "device-peer"] = Field(
        description="from where to where"
    )
    bytes: Count = Field(description="bytes copied; a device-device copy reads and writes as many")


class AllReduce(Timed):
    """A sum over GPUs of one NVLink domain, in bf16, left on all of them."""

    gpus: Annotated[int, Field(ge=2)] = Field(description="GPUs that take part")
    bytes: Count = Field(description="bytes of the vector on each")


class PrefillStep(Timed):
    """A whole prefill of a batch of equal prompts."""

    prompts: Count = Field(1, description="equal prompts in the batch")
    new: Count = Field(description="new tokens of each prompt")
    cached: NonNegativeInt = Field(0, description="tokens of each prompt whose K and V are there")


class DecodeStep(Timed):
    """A whole decode step of equal sequences."""

    batch: Count = Field(description="sequences")
    context: Count = Field(description="tokens of context of each")


class RaggedStep(Timed):
    """A whole decode step of sequences of different lengths."""

    contexts: Contexts = Field(description="tokens of context of each sequence")


class Steps(NamedForm):
    """Whole steps of one model, split over `tp` GPUs.

    `gpu` times are of the GPU alone and want the host time of an engine added; `wall` times hold that of
    `engine` and are good for it only.
    """

    name: Name = Field(description="a name for this set of steps")
    model: str = Field(description="catalogue name of the model whose shape was run")
    weights: WeightFormat = Field(description="precision of the weights")
    kv: NumberFormat = Field(description="precision of the KV cache")
    tp: Count = Field(1, description="GPUs that share a layer")
    clock: Literal["gpu", "wall"] = Field(description="gpu: time on the GPU alone; wall: host time included")
    engine: str | None = Field(None, description="wall: the engine profile whose host times are included")
    page_tokens: Count = Field(description="tokens of a page of the KV cache")
    attention: str = Field(description="the attention kernels of prefill and decode, in words")
    prefill: list[PrefillStep] = Field([], description="prefills of equal prompts")
    decode: list[DecodeStep] = Field([], description="decode steps of equal sequences")
    ragged: list[RaggedStep] = Field([], description="decode steps of sequences of different lengths")

    @model_validator(mode="after")
    def _wall_has_an_engine(self) -> Steps:
        if (self.clock == "wall") != (self.engine is not None):
            raise ValueProblem(
                "wall times belong to an engine, and GPU times to none",
                "write engine: with clock: wall, and leave it out with clock: gpu",
                ["engine", "clock"],
            )
        return self


class Hardware(Form):
    """The GPUs, as their driver describes them."""

    catalogue: str | None = Field(None, description="catalogue name of the GPU; none where it has none")
    gpu: str = Field(description="name that the driver gives")
    gpus: Count = Field(1, description="GPUs that took part")
    memory_bytes: Count | None = Field(None, description="memory that the driver reports")
    multiprocessors: Count | None = Field(None, description="streaming multiprocessors")
    sm_clock_mhz: Count | None = Field(None, description="highest clock of the multiprocessors")
    memory_clock_mhz: Count | None = Field(None, description="highest clock of the memory")
    power_limit_w: PositiveFloat | None = Field(None, description="power limit in force")


class Origin(Form):
    """Where the numbers come from."""

    date: str = Field(description="day of the measurement, such as 2026-11-30")
    command: str = Field(description="what was run")
    seconds: PositiveFloat | None = Field(None, description="how long it took")
    software: dict[str, str] = Field({}, description="versions: driver, torch, cuda and so on")
    source: str = Field(description="who measured, or where it was published")
    licence: str = Field(description="under which licence the numbers may be used")
    note: str = Field("", description="what a reader has to know")


class Load(Form):
    """What the GPU did while a table was measured, read from the driver about once a second."""

    during: str = Field(description="which table")
    sm_clock_mhz: Count = Field(description="median clock of the multiprocessors")
    sm_clock_lowest_mhz: Count = Field(description="lowest reading of it")
    power_w: PositiveFloat = Field(description="median power")
    temperature_c: float = Field(description="highest temperature")


class Refusal(Form):
    """What could not be measured, and why."""

    case: str = Field(description="what was tried")
    reason: str = Field(description="what came back")


class Device(RootForm):
    """Measurements of one kind of GPU."""

    sim: Literal[1] = Field(description="version of the file format")
    name: Name = Field(description="a short name")
    description: str = Field("", description="what it holds")
    hardware: Hardware = Field(description="the GPUs, as their driver describes them")
    origin: Origin = Field(description="where the numbers come from")
    load: list[Load] = Field([], description="clocks and power while it was measured")
    gemm: list[Gemm] = Field([], description="matrix products")
    attention_prefill: list[PrefillAttention] = Field([], description="attention of prompts")
    attention_decode: list[DecodeAttention] = Field([], description="attention of decode steps")
    copies: list[Copy] = Field([], description="copies of memory")
    all_reduce: list[AllReduce] = Field([], description="sums over GPUs")
    steps: Annotated[list[Steps], AfterValidator(with_own_names)] = Field(
        [], description="whole steps of models"
    )
    refused: list[Refusal] = Field([], description="what could not be measured, and why")
    left_out: list[str] = Field([], description="what the time limit left no room for")
