"""The verbs of `sim topo` and their options; what they do is imported when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

topo_app = typer.Typer(
    help="Look at topologies: parts, figures, ways, drawings, differences.", no_args_is_help=True
)

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to stdout instead of a screen.")]
TopologyFile = Annotated[
    str, typer.Argument(metavar="TOPOLOGY", help="Topology file, or a name of sim list topologies.")
]


@topo_app.command()
def show(
    topology: TopologyFile,
    scenario: Annotated[
        Path | None,
        typer.Option(
            "--scenario",
            metavar="FILE",
            help="Show where the replicas of this scenario sit.",
            readable=False,
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the parts of a topology as a tree, equal ones folded."""
    from sim.cli.topology import show_tree  # noqa: PLC0415 - slow to import

    show_tree(topology, scenario, json)


@topo_app.command()
def stats(topology: TopologyFile, json: Json = False, debug: Debug = False) -> None:
    """Show switches, cables, oversubscription, bisection bandwidth and hops."""
    from sim.cli.topology import show_stats  # noqa: PLC0415

    show_stats(topology, json)


@topo_app.command(context_settings={"ignore_unknown_options": True})  # a number below 0 is no option
def path(
    topology: TopologyFile,
    ends: Annotated[
        list[str], typer.Argument(metavar="A B", help="Two ends: a node by number or GROUP/NUMBER, or gpu N.")
    ],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the way between two nodes or GPUs, its latency and rate."""
    from sim.cli.topology import show_path  # noqa: PLC0415

    show_path(topology, ends, json)


@topo_app.command()
def diff(
    one: Annotated[str, typer.Argument(metavar="ONE", help="Topology file or name.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Topology file or name.")],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Say in which keys and figures two topologies differ."""
    from sim.cli.topology import show_difference  # noqa: PLC0415

    show_difference(one, other, json)


@topo_app.command()
def draw(
    topology: TopologyFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A .png or .svg file; else NAME.png.", readable=False),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="Colour links by their load in this run.", readable=False),
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw a topology: one unit in full, the rest folded."""
    from sim.cli.topology import draw_topology  # noqa: PLC0415

    draw_topology(topology, out, run)
