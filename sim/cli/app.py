"""The verbs and their options; what a verb does is imported when it is called, so that help is instant."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sim.cli.topo import topo_app
from sim.cli.trouble import answered

app = typer.Typer(
    name="sim",
    epilog="First steps: sim new my-study, then sim run my-study/scenario.yaml.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
trace_app = typer.Typer(help="Look into request traces, and fetch public ones.", no_args_is_help=True)
app.add_typer(trace_app, name="trace")
app.add_typer(topo_app, name="topo")

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to stdout instead of a screen.")]
ScenarioFile = Annotated[
    Path,
    typer.Argument(metavar="SCENARIO", help="Scenario file, or a run folder to repeat.", readable=False),
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value; may be given again.")
]
Variant = Annotated[
    str | None, typer.Option("--variant", metavar="NAME", help="Take a variant of the scenario.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Save to this new or empty folder, not under runs/.", readable=False
    ),
]

Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over", metavar="KEY=VALUES", help="Values of a key, such as run.drain=1 s,2 s; may be given again."
    ),
]
Seeds = Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Play each with so many seeds.")]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", min=-1, help="Processes; -1 is one for each core.")]


def main(words: Sequence[str] | None = None) -> int:
    """Run the command with these words, or those of the shell, and return its exit code."""
    given = list(sys.argv[1:] if words is None else words)
    return answered(lambda: app(given, prog_name="sim"), with_traceback="--debug" in given)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

        typer.echo(version("kvfabric"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Replay LLM requests through a cluster: what users feel, and what breaks first."""


@app.command()
def run(
    scenario: ScenarioFile,
    sets: Sets = None,
    variant: Variant = None,
    out: Out = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Simulate a scenario, show what came of it and save it.

    Exit code 1 says that the SLO was missed. A run folder in place of a scenario repeats that run.
    """
    from sim.cli.run import Order, simulate  # noqa: PLC0415 - slow to import

    raise typer.Exit(simulate(Order(scenario, tuple(sets or ()), variant, out, json)))


@app.command()
def compare(  # noqa: PLR0913, PLR0917 - one parameter an option
    scenarios: Annotated[
        list[Path],
        typer.Argument(metavar="SCENARIO...", help="Scenario files or run folders.", readable=False),
    ],
    over: Over = None,
    sets: Sets = None,
    seeds: Seeds = 5,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="COLUMN", help="Compare to this; else to the first.")
    ] = None,
    jobs: Jobs = -1,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown instead of a screen.")] = False,
    debug: Debug = False,
) -> None:
    """Play scenarios on the same requests, and say what clearly differs.

    Several files are compared as they are; with --over one is compared with itself along a key, as in
    --over router.policy=least_loaded,prefix_aware.
    """
    from sim.cli.compare import Order, compare_scenarios  # noqa: PLC0415 - slow to import

    form = "json" if json else "markdown" if markdown else "screen"
    order = Order(tuple(scenarios), tuple(over or ()), tuple(sets or ()), seeds, baseline, jobs, form)
    raise typer.Exit(compare_scenarios(order))


@app.command()
def sweep(  # noqa: PLR0913, PLR0917 - one parameter an option
    scenario: ScenarioFile,
    over: Over = None,
    find_max: Annotated[
        str | None,
        typer.Option("--find-max", metavar="KEY", help="Search for the highest value that meets the SLO."),
    ] = None,
    sets: Sets = None,
    variant: Variant = None,
    seeds: Seeds = 1,
    jobs: Jobs = -1,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Keep rows here, not under runs/.", readable=False),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Play a scenario over the values of keys, into a table with a row for each point and seed.

    A sweep that was stopped goes on where it was when the command is given again.
    """
    from sim.cli.sweep import Order, sweep_scenario  # noqa: PLC0415 - slow to import

    order = Order(scenario, tuple(over or ()), find_max, tuple(sets or ()), variant, seeds, jobs, out, json)
    raise typer.Exit(sweep_scenario(order))


@app.command()
def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Scenario and topology files.", readable=False)
    ],
    debug: Debug = False,
) -> None:
    """Check scenario and topology files without running."""
    from sim.cli.check import check_files  # noqa: PLC0415

    raise typer.Exit(check_files(files))


@app.command("list")
def list_(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="gpus, routers and so on; without it, all kinds.")
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show this one, with sources.")] = None,
    debug: Debug = False,
) -> None:
    """List what may be named in files, or show one entry."""
    from sim.cli.listing import list_kind, list_kinds, show_one  # noqa: PLC0415

    if kind is None:
        list_kinds()
    elif name is None:
        list_kind(kind)
    else:
        show_one(kind, name)


@app.command()
def show(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="gpu, node, link, model and so on.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of sim list KIND.")],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show one part: its values, where they come from and what follows from them."""
    from sim.cli.listing import show_one  # noqa: PLC0415

    show_one(kind, name, json)


@app.command()
def diff(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="gpu, node or link.")],
    names: Annotated[
        list[str],
        typer.Argument(metavar="OLD NEW", help="Two names; one alone is compared to its predecessor."),
    ],
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Compare GPUs with this model.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Say how two parts differ, as ratios, and what that does to prefill, decode and KV."""
    from sim.cli.parts import kind_of, show_difference  # noqa: PLC0415

    show_difference(kind_of(kind), names, model, json)


@app.command()
def roofline(
    gpu: Annotated[str, typer.Argument(metavar="GPU", help="A name of sim list gpus.")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model, or its config.json.")],
    weights: Annotated[
        str, typer.Option("--weights", metavar="PRECISION", help="Precision of its weights.")
    ] = "bf16",
    tp: Annotated[int, typer.Option("--tp", metavar="N", min=1, help="GPUs that share each layer.")] = 1,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="A .png or .svg file.", readable=False)
    ] = Path("roofline.png"),
    debug: Debug = False,
) -> None:
    """Draw what holds a model back on a GPU: its operators under the roofs of memory and arithmetic."""
    from sim.cli.roofline import Wish, draw_roofline  # noqa: PLC0415 - slow to import

    draw_roofline(Wish(gpu, model, weights, tp, out))


@app.command()
def schema(
    form: Annotated[str, typer.Argument(metavar="FORM", help="scenario, topology or device.")],
    debug: Debug = False,
) -> None:
    """Write a JSON schema, for completion in an editor."""
    from sim.cli.schema import write_schema  # noqa: PLC0415

    write_schema(form)


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to make.", readable=False)],
    debug: Debug = False,
) -> None:
    """Start a study from a small commented example."""
    from sim.cli.new import start_study  # noqa: PLC0415

    start_study(folder)


@app.command()
def calibrate(  # noqa: PLR0913, PLR0917 - one parameter an option
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Device file to write; must not be there yet.")
    ] = Path("device.yaml"),
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="Whose steps to measure; see sim list models.")
    ] = "llama-3.1-8b",
    gpu: Annotated[
        str | None, typer.Option("--gpu", metavar="NAME", help="What the catalogue calls this GPU.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="LIST", help="Of steps,gemm,attention,copies,all-reduce."),
    ] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", metavar="LIST", help="Of bf16,fp8; else both.")
    ] = None,
    limit: Annotated[
        str, typer.Option("--limit", metavar="TIME", help="Stop after this long, such as `6 min`.")
    ] = "1 h",
    source: Annotated[
        str, typer.Option("--source", metavar="TEXT", help="Who measures, for the file.")
    ] = "own measurement",
    licence: Annotated[
        str, typer.Option("--licence", metavar="TEXT", help="Under which the numbers may be used.")
    ] = "not stated",
    quick: Annotated[bool, typer.Option("--quick", help="A few cases of each kind.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be measured; needs no GPU.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Measure the GPU of this machine, and write a device file that scenarios can name."""
    from sim.cli.calibrate import Order, calibrate  # noqa: PLC0415 - slow to import

    order = Order(out, model, gpu, only, precision, limit, source, licence, quick, dry_run)
    raise typer.Exit(calibrate(order))


@app.command()
def validate(
    set_name: Annotated[
        str | None,
        typer.Option("--set-name", metavar="NAME", help="measured, silicon, published or theory; else all."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE", help="Other rows for the set, in its columns.", readable=False
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Write the page of the documentation to this file too."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="DIR", help="Draw predicted against measured, a PNG for each set."),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Hold predictions against measurements, and say by how much they err."""
    from sim.cli.validate import Order, validate  # noqa: PLC0415 - slow to import

    raise typer.Exit(validate(Order(set_name, data, json, write, plot)))


@trace_app.command("info")
def trace_info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Trace file, or the name of a known trace.")],
    format: Annotated[str, typer.Option("--format", metavar="READER", help="See sim list readers.")] = "auto",
    block_tokens: Annotated[
        int | None,
        typer.Option("--block-tokens", metavar="N", min=1, help="Tokens of one hashed block; else 512."),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Say what is in a trace, and what looks wrong."""
    from sim.cli.trace import describe  # noqa: PLC0415

    describe(file, format, block_tokens, json)


@trace_app.command("get")
def trace_get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a public trace.")],
    debug: Debug = False,
) -> None:
    """Fetch a public trace and check its hash."""
    from sim.cli.trace import fetch_trace  # noqa: PLC0415

    fetch_trace(name)
