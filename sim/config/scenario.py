"""What a user may write in a scenario file: forms, not names.

Every quantity carries its unit (see sim.config.quantities); every form is frozen and refuses
unknown keys. Whether a name exists in the catalogue is not known here: sim.checks joins the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PositiveInt,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from sim.base.errors import ValueProblem, listed
from sim.config.arrivals import Arrivals, Cancel, Lengths, PriorityClass
from sim.config.form import Form, Name, NamedList, RootForm
from sim.config.kvpool import KvPool
from sim.config.pool import Pool, Timing
from sim.config.quantities import (
    Duration,
    FilePath,
    ModelSource,
    PerSecond,
    PolicySource,
    PositiveDuration,
    Power,
    Price,
    SloLimit,
    TraceSource,
    as_written,
)
from sim.config.sessions import Sessions
from sim.config.speculative import Speculative

__all__ = ["Arrivals", "Lengths", "Scenario"]

Weights = Literal["bf16", "fp16", "fp8", "fp4", "mxfp4", "int4", "native"]
KvPrecision = Literal["bf16", "fp16", "fp8"]


class Model(Form):
    """Which model is served, and in which precision."""

    name: ModelSource = Field(
        description="catalogue name of the model, see `sim list models`, or the path of a config.json"
    )
    weights: Weights = Field(
        "fp8", description="precision of the weights and of the GEMMs; native: as the checkpoint has them"
    )
    kv: KvPrecision = Field("fp8", description="precision of the KV cache")


def as_model(value: object) -> object:
    """A name alone stands for the model of that name, with the defaults for the rest."""
    return {"name": value} if isinstance(value, str) else value


ModelChoice = Annotated[Model, BeforeValidator(as_model, json_schema_input_type=str | Model)]


class Router(Form):
    """Who gets the next request."""

    policy: PolicySource = Field(
        "prefix_aware",
        description="prefill router, see `sim list routers`, or your own: module:name, of module.py in this "
        "folder or of the Python path",
    )
    decode_policy: PolicySource = Field(
        "least_loaded", description="decode router, see `sim list routers`, or your own: module:name"
    )
    order: Literal["prefill_first", "decode_first"] = Field(
        "prefill_first",
        description="decode_first: the decode replica is chosen when a request arrives, before the prefill "
        "replica (llm-d); prefill_first: when the prompt is computed, or begins to leave",
    )
    reject: Literal["never", "slo"] = Field(
        "never",
        description="requests turned away when they arrive; slo: those whose estimated TTFT or predicted TBT "
        "(tpot, itl) is above the limit that the slo has for it",
    )
    colocated_tokens: PositiveInt | None = Field(
        None,
        description="colocated pools beside others: prompts of at most this many tokens go there; absent: "
        "requests go where fewer are under way for each GPU",
    )
    load_weight: Annotated[float, Field(ge=0)] = Field(
        1.0,
        description="prefix_aware, topology_aware: cost of one token queued before the request, against one "
        "not cached, or one moved a step; prefix_score: weight of load against that of the cache",
    )
    decode_load_weight: Annotated[float, Field(ge=0)] = Field(1.0, description="the same for decode_policy")
    stale: Duration = Field(
        as_written("0 s"), description="how old the loads are that routers see, their own choices included"
    )


class Scale(Form):
    """Overlay seeded, time-shifted copies of a trace to fill a larger cluster."""

    copies: PositiveInt = Field(1, description="how many copies are overlaid")
    shared_blocks: Annotated[int, Field(ge=0)] = Field(
        1, description="leading KV blocks of each request that all copies share (a system prompt)"
    )


FIELDS_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "trace": ("format", "block_tokens", "tick", "sort_window", "on_bad_row", "scale"),
        "generator": ("rate",),
        "arrivals": ("input", "output"),
        "concurrency": ("input", "output", "think", "ramp_up"),
        "sessions": ("block_tokens",),
        "servegen": ("rate_scale",),
    }
)
"""The sources of a workload, and the fields that mean something for some of them only."""


class Workload(Form):
    """Who asks for what, when: exactly one source, such as `trace` or `arrivals`."""

    trace: TraceSource | None = Field(None, description="a trace file, or a name known to `sim trace get`")
    format: str = Field("auto", description="trace reader, see `sim list readers`")
    block_tokens: PositiveInt = Field(512, description="tokens of one hashed block (hash_ids of the trace)")
    tick: PositiveDuration | None = Field(
        None, description="trace: arrivals come in ticks of this length; spread within"
    )
    sort_window: Duration = Field(
        as_written("10 s"), description="trace: rows out of order by at most this are sorted"
    )
    on_bad_row: Literal["fail", "skip"] = Field(
        "fail", description="trace: stop at a bad row, or count and skip"
    )
    scale: Scale = Field(Scale(), description="trace: overlay copies")
    generator: Literal["mooncake-conversation"] | None = Field(
        None, description="an embedded generator shaped like a real trace"
    )
    rate: PerSecond | None = Field(None, description="generator: mean arrival rate")
    arrivals: Arrivals | None = Field(None, description="a synthetic arrival process")
    concurrency: PositiveInt | None = Field(
        None, description="so many requests in flight at any time, as benchmark tools ask"
    )
    sessions: Sessions | None = Field(
        None, description="users who wait for each answer before they ask again"
    )
    servegen: TraceSource | None = Field(
        None, description="clients of ServeGen: a .tar.gz or a folder of N-trace.csv and N-dataset.json"
    )
    rate_scale: Annotated[float, Field(gt=0)] = Field(
        1.0, description="servegen: times as many requests as the clients send"
    )
    input: Lengths | None = Field(None, description="arrivals, concurrency: prompt lengths")
    output: Lengths | None = Field(None, description="arrivals, concurrency: output lengths")
    think: Duration | None = Field(
        None,
        description="concurrency: mean time between an answer and the next request (exponential)",
    )
    ramp_up: Duration | None = Field(None, description="concurrency: users come evenly over this time")
    timeout: PositiveDuration | None = Field(
        None, description="users give up a request that has not ended so long after it was sent"
    )
    cancel: Cancel | None = Field(None, description="requests that users take back before they have ended")
    priorities: list[PriorityClass] = Field(
        [], description="how urgent parts of the requests are; the rest has priority 0"
    )
    limit: PositiveInt | None = Field(None, description="take at most this many requests")

    @model_validator(mode="after")
    def _one_source(self) -> Workload:
        given = [source for source in FIELDS_OF if getattr(self, source) is not None]
        if len(given) == 1:
            return self
        sources = listed(list(FIELDS_OF), "or")
        if not given:
            raise ValueProblem(f"says nothing to replay: no {sources}", "give exactly one of them")
        nulls = [f"`{source}: null`" for source in given]
        hint = f"keep one of them; a patch takes one back with {listed(nulls, 'or')}"
        raise ValueProblem(f"{listed(given)} exclude each other", hint, given)

    @model_validator(mode="after")
    def _shares_of_a_whole(self) -> Workload:
        if sum(part.share for part in self.priorities) > 1:
            raise ValueProblem("the shares are more than 100 %", "make them add up to less", ["priorities"])
        return self

    @model_serializer(mode="wrap")
    def _own_fields(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what belongs to a source that is not there."""
        absent = [source for source in FIELDS_OF if getattr(self, source) is None]
        own = {field for source in set(FIELDS_OF) - set(absent) for field in FIELDS_OF[source]}
        foreign = {field for source in absent for field in FIELDS_OF[source]} - own
        return {key: value for key, value in write(self).items() if key not in foreign}


class Run(Form):
    """What part of the workload is replayed and measured."""

    seed: Annotated[int, Field(ge=0)] = Field(
        1, description="one seed; every purpose draws its own stream from it"
    )
    start: Duration = Field(as_written("0 s"), description="workload time at which the simulation starts")
    duration: Duration | None = Field(None, description="length of the replayed window; default: to the end")
    warmup: Duration = Field(
        as_written("0 s"), description="requests arriving this early in the window are not measured"
    )
    warm_caches: bool | Duration = Field(
        False,
        description="feed the blocks of requests before the window into the caches: true, or how far back",
    )
    drain: Duration = Field(
        as_written("10 min"), description="give up on unfinished requests this long after the last arrival"
    )
    sample_every: PositiveDuration = Field(
        as_written("1 s"), description="interval of the rows in samples.parquet"
    )


class Cost(Form):
    """What GPUs cost and draw, where the catalogue does not know or you know better."""

    gpu_price: Price | None = Field(
        None, description="rent of a GPU, such as `2.50 USD/h`, in place of the catalogue's"
    )
    idle_power: Power | None = Field(None, description="what a GPU draws with nothing to do, such as `120 W`")
    busy_power: Power | None = Field(None, description="what a GPU draws at work, such as `600 W`")


class Scenario(RootForm):
    """One what-if question: this workload on this cluster, served this way."""

    sim: Literal[1] = Field(description="version of the file format")
    name: Name = Field(description="a short name; the run folder carries it")
    description: str = Field("", description="what the scenario is about")
    topology: FilePath = Field(description="topology file")
    model: ModelChoice = Field(
        description="which model is served, such as llama-3.1-70b, {name: llama-3.1-70b, weights: fp8} or "
        "my-model/config.json"
    )
    engine: str = Field("reference", description="engine profile, see `sim list engines`")
    timing: Timing = Field(Timing(), description="where the times of replicas come from")
    pools: NamedList[Pool] = Field(description="the replicas, in pools of equal ones")
    speculative: Speculative | None = Field(
        None, description="drafts that decode steps verify; absent: a step gives each sequence one token"
    )
    router: Router = Field(Router(), description="who gets the next request")
    kv_pool: KvPool = Field(KvPool(), description="where computed KV blocks may be found again")
    workload: Workload = Field(description="who asks for what, when")
    run: Run = Field(Run(), description="what part of the workload is replayed and measured")
    cost: Cost = Field(Cost(), description="what GPUs cost and draw")
    slo: list[SloLimit] = Field([], description="limits such as `ttft p90 < 2 s`")
