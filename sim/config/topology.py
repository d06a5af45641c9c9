"""What a user may write in a topology file: which nodes there are and how they are wired."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from sim.config.form import Form, Name, NamedForm, NamedList, RootForm
from sim.config.quantities import PositiveFraction, as_written


class NodeGroup(NamedForm):
    """A number of equal nodes."""

    name: Name = Field(description="your name for the group")
    type: str = Field(description="catalogue name, see `sim list nodes`")
    count: PositiveInt = Field(description="how many nodes")


class Routing(Form):
    """How traffic spreads over parallel links."""

    kind: Literal["spray"] = Field(
        "spray", description="spray: packets go over all parallel links, which act as one"
    )
    efficiency: PositiveFraction = Field(
        as_written("100 %"),
        description="part of the parallel links' capacity that spraying reaches, such as `95 %`",
    )


class Leaf(Form):
    """The first tier: in a rail-optimised fabric, one leaf per unit and rail."""

    radix: PositiveInt = Field(description="ports of the switch")
    uplinks: Annotated[int, Field(ge=0)] = Field(
        description="cables from one leaf up to the spines of its pod"
    )


class Spine(Form):
    """The second tier: the spines of a pod join the leaves of its units."""

    per_pod: PositiveInt = Field(description="spine switches in a pod")
    radix: PositiveInt = Field(description="ports of the switch")
    uplinks: Annotated[int, Field(ge=0)] = Field(0, description="cables from one spine up to the cores")


class Core(Form):
    """The third tier: joins the pods."""

    count: PositiveInt = Field(description="core switches")
    radix: PositiveInt = Field(description="ports of the switch")


class Fabric(Form):
    """A rail-optimised fabric of up to three tiers, all links of one type."""

    kind: Literal["rail-optimized"] = Field(description="the builder")
    link: str = Field(description="catalogue name of the links, see `sim list links`")
    rails: PositiveInt = Field(description="rails; NIC i of every node is on rail i")
    nodes_per_unit: PositiveInt = Field(description="nodes of a scalable unit; the last unit may be smaller")
    units_per_pod: PositiveInt = Field(description="scalable units of a pod")
    leaf: Leaf = Field(description="the switches that the nodes are cabled to")
    spine: Spine | None = Field(None, description="the switches above the leaves; absent: one tier")
    core: Core | None = Field(None, description="the switches above the spines; absent: two tiers")
    routing: Routing = Field(Routing(), description="how traffic spreads over parallel links")


class Topology(RootForm):
    """Nodes and the fabric between them."""

    sim: Literal[1] = Field(description="version of the file format")
    name: Name = Field(description="the name of the topology")
    description: str = Field("", description="what it is")
    source: list[str] = Field(min_length=1, description="where the shape comes from")
    nodes: NamedList[NodeGroup] = Field(description="groups of equal nodes")
    fabric: Fabric | None = Field(None, description="absent: the nodes are not connected")
