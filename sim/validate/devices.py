"""Kernels, copies and whole steps of one GPU against the roofline and against tables made of them.

Model: each row of a device file (`sim calibrate`) is asked of the roofline, for the GPU, model and precision
it was measured with. Steps by the wall clock contain the host of the engine that they name; those of the GPU
alone are predicted without any. Steps are asked a second time of a provider by table that was given every
other row of them, so that it is held to rows that it has not seen.
Attention of a decode step, and of prompts, is one layer's. A copy on the device reads and writes as many
bytes as it copies.
Units: microseconds. Ignores: all-reduces of tables that the links of the catalogue were read from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sim.base.errors import UnsupportedError
from sim.catalog.attention import GroupedAttention
from sim.catalog.load import load_catalog
from sim.catalog.matrix import Matrix
from sim.catalog.measurements import measurement_file
from sim.catalog.precision import precision
from sim.config.device import Copy, DecodeAttention, Device, Heads, Steps
from sim.config.load import load_form
from sim.timing.attention import Core, cores
from sim.timing.gemm import gemm
from sim.timing.placement import Placement, Shard, place
from sim.timing.rates import Rates
from sim.timing.roofline import Roofline
from sim.validate.comparison import Comparison, Comparisons, NotComparable
from sim.validate.kernelfile import device_of_json
from sim.validate.nccl import by_nccl
from sim.validate.tabled import tabled

PS_PER_US = 10**6
DEFAULT = ("h200-paged-torch", "h200-sxm", "h200-sxm-pair")
FITTED_TO = ("h200-paged-torch",)
"""Measurements that efficiencies and engine constants of the catalogue were fitted to."""
PLAIN_MODEL = "llama-3.1-8b"
Case = tuple[str, str, float, float]
"""Id, group, predicted and measured microseconds."""


def measured(path: Path | None) -> Comparisons:
    """Compare the device files of the catalogue, or the one that is given."""
    devices = [opened(measurement_file(name)) for name in DEFAULT] if path is None else [opened(path)]
    rows: list[Comparison] = []
    left: list[NotComparable] = []
    for device in devices:
        is_fitted = path is None and device.name in FITTED_TO
        for make in (_kernels, _copies, _all_reduces, _steps):
            try:
                rows += [_comparison(device, case, is_fitted) for case in make(device)]
            except UnsupportedError as error:
                left.append(NotComparable(f"{device.name}/{make.__name__.strip('_')}", error.problem))
        left += [NotComparable(f"{device.name}/{each.case}", each.reason) for each in device.refused]
    return Comparisons("measured", tuple(rows), tuple(left))


def opened(path: Path) -> Device:
    """A device file, or the JSON of a script that measured the same things."""
    return device_of_json(path) if path.suffix == ".json" else load_form(Device, path)


def _comparison(device: Device, case: Case, is_fitted: bool) -> Comparison:
    name, group, predicted, found = case
    return Comparison(
        id=f"{device.name}/{name}",
        metric="latency",
        predicted=predicted,
        measured=found,
        unit="us",
        group=f"{device.name}: {group}",
        source=f"{device.origin.source} ({device.origin.date})",
        fitted=is_fitted and "table" not in group,
    )


@dataclass(frozen=True, slots=True)
class Bench:
    """One GPU of a device file, with a model on it."""

    device: Device

    def placement(self, weights: str, kv: str = "bf16", model: str = PLAIN_MODEL, tp: int = 1) -> Placement:
        """A model on the GPU that was measured."""
        catalog = load_catalog()
        gpu = self.device.hardware.catalogue
        if gpu is None or gpu not in catalog.gpus:
            raise UnsupportedError(f"the catalogue has no GPU {gpu or self.device.hardware.gpu}")
        node = next(node.name for node in catalog.nodes.values() if node.gpu == gpu)
        return place(catalog, Shard(catalog.models[model], weights, kv, tp), node)


def _kernels(device: Device) -> Iterator[Case]:
    """Products and attention."""
    bench = Bench(device)
    for row in device.gemm:
        rates = Rates.of(bench.placement(row.precision))
        predicted = gemm(rates, Matrix("mlp", row.n, row.k), precision(row.precision))(row.m)
        size = "decode" if row.m <= 256 else "prefill"
        yield (
            f"gemm/{row.precision}/{row.m}x{row.n}x{row.k}",
            f"products {row.precision}, {size} sizes",
            predicted / PS_PER_US,
            row.median_us,
        )
    for prompt in device.attention_prefill:
        core = _core(bench, prompt)
        group = f"attention of prompts, {prompt.kernel}" + (", cached prefix" if prompt.cached else "")
        name = f"attention/{prompt.kernel}/{prompt.kv}/{prompt.prompts}x{prompt.new}+{prompt.cached}"
        predicted = core.prefill_ps([(prompt.new, prompt.cached)] * prompt.prompts)
        yield _of_heads(name, prompt), group, predicted / PS_PER_US, prompt.median_us
    for step in device.attention_decode:
        yield _decode_attention(bench, step)


def _decode_attention(bench: Bench, row: DecodeAttention) -> Case:
    core = _core(bench, row)
    rates = Rates.of(bench.placement("bf16"))
    tokens = row.contexts[0] * row.batch if len(row.contexts) == 1 else sum(row.contexts)
    kind = "equal" if len(set(row.contexts)) == 1 else "unequal"
    read = core.step_bytes * tokens / rates.attention_bytes * 10**12
    name = f"attention-decode/{row.kernel}/{row.kv}/b{row.batch}/{kind}-{tokens}"
    group = f"attention of decode steps, {row.kv}, {kind} contexts"
    return _of_heads(name, row), group, (core.kernel_ps + read) / PS_PER_US, row.median_us


def _of_heads(name: str, row: Heads) -> str:
    return f"{name}/h{row.heads}-{row.kv_heads}-{row.head_dim}"


def _core(bench: Bench, row: Heads) -> Core:
    """One layer with these heads."""
    placement = bench.placement("bf16", row.kv)
    kernel = "flash-2" if row.kernel == "flash-2" else "tuned"
    placement = replace(placement, engine=replace(placement.engine, attention_kernel=kernel))
    layer, _ = placement.shard.model.groups[0]
    assert isinstance(layer.attention, GroupedAttention)
    heads = replace(
        layer.attention,
        heads=row.heads,
        kv_heads=row.kv_heads,
        head_dim=row.head_dim,
        value_dim=row.head_dim,
    )
    core = cores(Rates.of(placement), placement.shard, replace(layer, attention=heads), 1)
    assert core is not None
    return core


def _copies(device: Device) -> Iterator[Case]:
    """Copies of memory."""
    bench = Bench(device)
    for row in device.copies:
        placement = bench.placement("bf16")
        predicted = _copy_s(placement, row) * 10**6
        yield f"copy/{row.direction}/{row.bytes}", f"copies, {row.direction}", predicted, row.median_us


def _copy_s(placement: Placement, row: Copy) -> float:
    catalog, node = load_catalog(), placement.node
    rates = Rates.of(placement)
    if row.direction == "device-device":
        return rates.kernel_ps / 10**12 + 2 * row.bytes / rates.elementwise_bytes
    name = node.nvlink if row.direction == "device-peer" else node.pcie
    if name is None:
        raise UnsupportedError(f"{node.title} has no link for copies {row.direction}")
    link = catalog.links[name]
    latency_ps = link.latency_ps + link.endpoint_latency_ps
    return latency_ps / 10**12 + row.bytes / link.effective_bytes_per_s


def _all_reduces(device: Device) -> Iterator[Case]:
    """Sums over GPUs of one node."""
    bench = Bench(device)
    for row in device.all_reduce:
        node = bench.placement("bf16").node
        if node.nvlink is None:
            raise UnsupportedError(f"{node.title} has no NVLink")
        curve = by_nccl(load_catalog().links[node.nvlink], row.gpus).curve()
        group = f"all-reduce over {row.gpus} GPUs"
        yield f"all-reduce/{row.gpus}/{row.bytes}", group, curve(row.bytes) / PS_PER_US, row.median_us


def _steps(device: Device) -> Iterator[Case]:
    """Whole prefills and decode steps, by the roofline and by a table of every other row."""
    bench = Bench(device)
    for steps in device.steps:
        roofline = _roofline_of(bench, steps)
        yield from _prefills(steps, roofline)
        yield from _decodes(steps, roofline)
        yield from tabled(steps, roofline.placement)


def _roofline_of(bench: Bench, steps: Steps) -> Roofline:
    """The roofline under the engine that was measured, or without any host."""
    catalog = load_catalog()
    placement = bench.placement(steps.weights, steps.kv, steps.model, steps.tp)
    if steps.engine is not None:
        return Roofline(replace(placement, engine=catalog.engines[steps.engine]))
    bare = replace(placement.engine, decode_host_time_ps=0, prefill_host_time_ps=0, prefill_launch_time_ps=0)
    return Roofline(replace(placement, engine=bare))


def _prefills(steps: Steps, roofline: Roofline) -> Iterator[Case]:
    for row in steps.prefill:
        predicted = roofline.prefill_ps([(row.new, row.cached)] * row.prompts)
        kind = "prefill, cached prefix" if row.cached else "prefill"
        name = f"{steps.name}/prefill/{row.prompts}x{row.new}+{row.cached}"
        yield name, f"{kind} {steps.weights}, roofline", predicted / PS_PER_US, row.median_us


def _decodes(steps: Steps, roofline: Roofline) -> Iterator[Case]:
    asked: Sequence[tuple[str, list[int], float]] = [
        *((f"b{row.batch}-c{row.context}", [row.context] * row.batch, row.median_us) for row in steps.decode),
        *(
            (f"unequal{at}-b{len(row.contexts)}", row.contexts, row.median_us)
            for at, row in enumerate(steps.ragged)
        ),
    ]
    step_ps: Callable[[Sequence[int]], int] = roofline.step_ps
    for name, contexts, found in asked:
        kind = "unequal decode steps" if name.startswith("unequal") else "decode steps"
        group = f"{kind} {steps.weights}, roofline"
        yield f"{steps.name}/decode/{name}", group, step_ps(contexts) / PS_PER_US, found
