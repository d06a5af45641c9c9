"""What a user may write in a topology file: which nodes there are and how they are wired.

A fabric has one link type and up to three tiers of switches. Its `kind` says how it is cabled, and which of
the keys below mean something; a key that the kind does not use is a mistake. What the cables of an explicit
fabric may say is in sim.config.cable_end.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PositiveInt,
    SerializerFunctionWrapHandler,
    Tag,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from sim.base.errors import ValueProblem, did_you_mean, listed
from sim.config.cable_end import End
from sim.config.form import Form, Name, NamedForm, NamedList, RootForm
from sim.config.quantities import BytesPerSecond, Length, PositiveFraction, Size, as_written

Count = Annotated[int, Field(ge=0)]


class NodeGroup(NamedForm):
    """A number of equal nodes."""

    name: Name = Field(description="your name for the group")
    type: str = Field(description="catalogue name, see `sim list nodes`")
    count: PositiveInt = Field(description="how many nodes")
    domain_nodes: PositiveInt = Field(
        1, description="nodes that share one NVLink domain: 18 compute trays in a rack of NVL72"
    )
    copy_engine_rate: BytesPerSecond | None = Field(
        None,
        description="the most that one copy between a GPU and host memory gets, whatever its link carries; "
        "absent: as the catalogue says of the link",
    )

    @model_validator(mode="after")
    def _whole_domains(self) -> Self:
        if self.count % self.domain_nodes:
            fits = self.count - self.count % self.domain_nodes
            counts = [str(count) for count in (fits, fits + self.domain_nodes) if count]
            raise ValueProblem(
                f"{self.count} nodes are not a whole number of NVLink domains of {self.domain_nodes}",
                f"write count: {' or '.join(counts)}; a smaller domain is a group of its own",
                ["count"],
            )
        return self


class Routing(Form):
    """How traffic spreads over parallel links."""

    kind: Literal["spray", "ecmp", "static", "ar_flow"] = Field(
        "spray",
        description="spray: packets go over all parallel links, which act as one; ecmp: by a hash of each "
        "queue pair; static: by destination; ar_flow: each flow to the least loaded link when it starts",
    )
    efficiency: PositiveFraction = Field(
        as_written("100 %"),
        description="part of the parallel links' capacity that the routing reaches, such as `95 %`",
    )
    qps: PositiveInt = Field(1, description="ecmp: queue pairs of a transfer, each hashed on its own")
    bytes: Literal["split", "pooled"] = Field(
        "split",
        description="ecmp: split: each queue pair carries an equal share of the bytes; "
        "pooled: all take from what is left",
    )
    queue_pair_rate: BytesPerSecond | None = Field(
        None,
        description="the most that one queue pair gets, whatever its NIC carries; a transfer has as many "
        "as qps says on each NIC that it uses; absent: as the catalogue says of the link",
    )

    @model_validator(mode="after")
    def _own_keys(self) -> Self:
        foreign = sorted({"qps", "bytes"} & self.model_fields_set)
        if self.kind != "ecmp" and foreign:
            is_are = "is" if len(foreign) == 1 else "are"
            raise ValueProblem(
                f"{listed(foreign)} {is_are} for kind: ecmp, and this is {self.kind}",
                f"take {'it' if len(foreign) == 1 else 'them'} away, or write kind: ecmp",
                foreign,
            )
        return self

    @model_serializer(mode="wrap")
    def _written_keys(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what only ECMP uses."""
        values: dict[str, Any] = write(self)
        return {key: values[key] for key in values if self.kind == "ecmp" or key not in {"qps", "bytes"}}


class Leaf(Form):
    """The first tier: the switches that nodes are cabled to."""

    radix: PositiveInt = Field(description="ports of the switch")
    uplinks: Count = Field(description="cables from one leaf up to the spines of its pod")


class Spine(Form):
    """The second tier: the spines of a pod join the leaves of its units, all of them or those of a rail."""

    per_pod: PositiveInt | None = Field(None, description="spine switches in a pod, which serve all rails")
    per_rail: PositiveInt | None = Field(
        None, description="instead of per_pod: spine switches in a pod for each rail, which serve it alone"
    )
    radix: PositiveInt = Field(description="ports of the switch")
    uplinks: Count = Field(0, description="cables from one spine up to the cores")

    @model_validator(mode="after")
    def _one_count(self) -> Self:
        if self.per_pod is not None and self.per_rail is not None:
            raise ValueProblem(
                "per_pod and per_rail exclude each other",
                "keep one of them; a patch takes the other back with `per_pod: null` or `per_rail: null`",
                ["per_pod", "per_rail"],
            )
        if self.per_pod is None and self.per_rail is None:
            raise ValueProblem(
                "how many spines there are is missing",
                "add per_pod: 32 where they serve all rails, or per_rail: 4 where each rail has its own",
            )
        return self


class Core(Form):
    """The third tier: joins the pods."""

    count: PositiveInt = Field(description="core switches")
    radix: PositiveInt = Field(description="ports of the switch")


class CableLengths(Form):
    """How long the cables between two tiers are; light takes 5 ns for a metre of fibre."""

    node_leaf: Length = Field(as_written("0 m"), description="from a NIC to its leaf, or to the other node")
    leaf_spine: Length = Field(as_written("0 m"), description="from a leaf to a spine")
    spine_core: Length = Field(as_written("0 m"), description="from a spine to a core")


class Switch(NamedForm):
    """One switch of an explicit fabric."""

    name: Name = Field(description="your name for the switch; cables are written with it")
    tier: Literal[1, 2, 3] = Field(description="1 for a leaf, 2 for a spine, 3 for a core")
    radix: PositiveInt = Field(description="ports of the switch")


class Cable(Form):
    """Equal cables of an explicit fabric."""

    from_: End = Field(alias="from", description="a switch, or GROUP/NODES/NICS such as dgx/0-15/0")
    to: End = Field(description="the switch at the other end")
    count: PositiveInt = Field(1, description="between switches: parallel cables; a NIC has only one")
    length: Length = Field(as_written("0 m"), description="how long each is")

    @model_serializer(mode="wrap")
    def _by_alias(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        return {"from" if key == "from_" else key: value for key, value in values.items()}


def _shape(value: object) -> str:
    return "list" if isinstance(value, list) else "lengths"


Cables = Annotated[
    Annotated[CableLengths, Tag("lengths")] | Annotated[list[Cable], Tag("list")], Discriminator(_shape)
]

_TIERED = ("rails_per_leaf", "nodes_per_unit", "units_per_pod", "leaf", "spine", "core", "other_rail")
KEYS_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rail-optimized": _TIERED,
        "direct": (),
        "explicit": ("switches", "other_rail", "uneven"),
    }
)
"""The kinds of fabrics, and the keys that mean something for some of them only."""

NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rail-optimized": ("nodes_per_unit", "units_per_pod", "leaf"),
        "direct": (),
        "explicit": ("switches", "cables"),
    }
)
"""The keys without which a kind of fabric cannot be built."""

_SOMEWHERE = tuple(dict.fromkeys(key for keys in KEYS_OF.values() for key in keys))


def known_kind(kind: object) -> object:
    """Refuse what is neither a kind of fabric nor the `module:function` of a builder."""
    if isinstance(kind, str) and kind not in KEYS_OF and ":" not in kind:
        raise ValueProblem(f"'{kind}' is no kind of fabric", did_you_mean(kind, KEYS_OF))
    return kind


Kind = Annotated[
    str,
    BeforeValidator(known_kind),
    WithJsonSchema({"anyOf": [{"enum": list(KEYS_OF)}, {"type": "string", "pattern": "^[^:]+:[^:]+$"}]}),
]


class Fabric(Form):
    """How the nodes are wired, all by one type of link."""

    kind: Kind = Field(
        description="rail-optimized: tiers of switches; direct: two nodes, NIC to NIC; explicit: switches "
        "and cables one by one; or module:function of a builder of your own"
    )
    link: str = Field(description="catalogue name of the links, see `sim list links`")
    rails: PositiveInt = Field(
        description="rails; the NICs of a node are dealt to them in order: NIC i to rail i, where as many"
    )
    rails_per_leaf: PositiveInt = Field(
        1, description="rail-optimized: rails that share a leaf; all of them: each node has one leaf"
    )
    nodes_per_unit: PositiveInt | None = Field(
        None, description="rail-optimized: nodes of a scalable unit; the last unit may be smaller"
    )
    units_per_pod: PositiveInt | None = Field(None, description="rail-optimized: scalable units of a pod")
    leaf: Leaf | None = Field(
        None,
        description="rail-optimized: the switches that the nodes are cabled to, such as {radix: 64, "
        "uplinks: 32}",
    )
    spine: Spine | None = Field(
        None, description="rail-optimized: the switches above the leaves; absent: one tier"
    )
    core: Core | None = Field(
        None, description="rail-optimized: the switches above the spines; absent: two tiers"
    )
    switches: NamedList[Switch] | None = Field(
        None, description="explicit: every switch, such as {name: leaf-0, tier: 1, radix: 64}"
    )
    cables: Cables | None = Field(
        None,
        description="lengths by tier, such as {node_leaf: 10 m}; explicit: every cable, such as "
        "{from: dgx/0-15/0, to: leaf-0}",
    )
    uneven: bool = Field(False, description="explicit: the rails of a node may differ in what is above them")
    other_rail: Literal["pxn", "spine"] = Field(
        "pxn",
        description="how bytes get to a NIC of another rail: pxn: over NVLink before they leave the node; "
        "spine: over the switches",
    )
    gpudirect: bool = Field(
        True, description="whether NICs read and write GPU memory; false: bytes pass through host memory"
    )
    routing: Routing = Field(Routing(), description="how traffic spreads over parallel links")

    @model_validator(mode="after")
    def _keys_of_kind(self) -> Self:
        if self.kind not in KEYS_OF:
            return self
        foreign = [key for key in _SOMEWHERE if self.is_written(key) and key not in KEYS_OF[self.kind]]
        if foreign:
            it = "it" if len(foreign) == 1 else "them"
            users = [kind for kind, keys in KEYS_OF.items() if set(foreign) <= set(keys)]
            instead = f", or write kind: {' or '.join(users)}" if users else ""
            raise ValueProblem(
                f"a fabric of kind {self.kind} does not use {listed(foreign)}",
                f"take {it} away{instead}",
                foreign,
            )
        absent = [key for key in NEEDED[self.kind] if not self.is_written(key)]
        if absent:
            about = type(self).model_fields[absent[0]].description
            raise ValueProblem(
                f"a fabric of kind {self.kind} needs {listed(absent)}",
                f"add `{absent[0]}` ({str(about).partition(': ')[2]})",
            )
        return self

    @model_validator(mode="after")
    def _cables_of_kind(self) -> Self:
        if self.kind in KEYS_OF and self.cables is not None:
            is_list = isinstance(self.cables, list)
            if is_list and self.kind != "explicit":
                raise ValueProblem(
                    f"a fabric of kind {self.kind} is cabled by its kind; cables gives only their lengths",
                    "write lengths such as {node_leaf: 10 m}, or kind: explicit",
                    ["cables"],
                )
            if not is_list and self.kind == "explicit":
                raise ValueProblem(
                    "an explicit fabric lists its cables",
                    "write a list of cables such as - {from: dgx/0-15/0, to: leaf-0, length: 10 m}",
                    ["cables"],
                )
        return self

    @model_validator(mode="after")
    def _shared_leaves(self) -> Self:
        if self.rails % self.rails_per_leaf:
            fitting = [str(n) for n in range(1, self.rails + 1) if self.rails % n == 0]
            raise ValueProblem(
                f"{self.rails_per_leaf} rails to a leaf do not divide the {self.rails} rails",
                f"write {listed(fitting, 'or')}",
                ["rails_per_leaf"],
            )
        if self.rails_per_leaf > 1 and self.spine is not None and self.spine.per_rail is not None:
            raise ValueProblem(
                f"{self.rails_per_leaf} rails share a leaf, so a rail has no spines of its own",
                "write per_pod in place of per_rail, or rails_per_leaf: 1",
                ["spine.per_rail"],
            )
        return self

    def is_written(self, key: str) -> bool:
        """Whether a key was given a value."""
        return key in self.model_fields_set and getattr(self, key) is not None

    @property
    def lengths(self) -> CableLengths:
        """Lengths by tier; those of an explicit fabric are with its cables."""
        return self.cables if isinstance(self.cables, CableLengths) else CableLengths()

    @model_serializer(mode="wrap")
    def _written_keys(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what the kind does not use."""
        own = KEYS_OF.get(self.kind, _SOMEWHERE)
        return {key: value for key, value in write(self).items() if key in own or key not in _SOMEWHERE}


class Lent(Form):
    """What each node of a group lends to the pool of KV blocks."""

    nodes: str = Field(description="the name of the group of nodes that lends")
    dram: Size | None = Field(None, description="host memory that each node lends, such as `1 TB`")
    nvme: Size | None = Field(None, description="NVMe that each node lends, such as `8 TB`")


class Topology(RootForm):
    """Nodes and the fabric between them."""

    sim: Literal[1] = Field(description="version of the file format")
    name: Name = Field(description="the name of the topology")
    description: str = Field("", description="what it is")
    source: list[str] = Field(min_length=1, description="where the shape comes from")
    nodes: NamedList[NodeGroup] = Field(description="groups of equal nodes")
    fabric: Fabric | None = Field(None, description="absent: the nodes are not connected")
    kv_pool: list[Lent] = Field([], description="what nodes lend to a pool of KV blocks")
