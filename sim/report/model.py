"""One model in words: its layers, what weights and KV take, where it fits, and where its shapes were read.

The screen is made of the plain figures that `--json` writes. KV and fits are for an FP8 cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from sim.base.units import show as shown
from sim.report.text import WIDTH, Line
from sim.results.words import NOTHING, aligned, count_short, whole

Figures = Mapping[str, Any]
INDENT = 14
LEFT_OUT = {
    "vision_config": "the tower for images",
    "audio_config": "the tower for sound",
}
FURTHER = "layers that predict further tokens"


def model_screen(figures: Figures) -> list[Line]:
    """The whole screen."""
    return [
        *_head(figures),
        [],
        *_layers(figures),
        [],
        *_bytes(figures),
        [],
        *_fits(figures),
        *_values(figures),
    ]


def _head(figures: Figures) -> Iterator[Line]:
    total, active = figures["parameters"], figures["active_parameters"]
    size = f"{billions(total)} parameters"
    if active < total / 2:
        size += f", {billions(active)} active"
    yield [
        (figures["title"], "bold"),
        (" " * max(2, WIDTH - len(figures["title"]) - len(size)), ""),
        (size, ""),
    ]
    facts = [
        f"hidden {whole(figures['hidden'])}",
        f"vocabulary {whole(figures['vocab'])}",
        f"context {whole(figures['max_context'])}",
        "embeddings tied" if figures["tied_embeddings"] else "LM head of its own",
        f"published in {figures['native'].upper()}",
    ]
    yield from _wrapped("", ", ".join(facts))
    if figures["published"]:
        said = [f"{billions(value)} {key.replace('_', ' ')}" for key, value in figures["published"].items()]
        yield from _wrapped("", f"its authors say {', '.join(said)}")
    if figures["left_out"]:
        named = dict.fromkeys(LEFT_OUT.get(key, FURTHER) for key in figures["left_out"])
        yield from _wrapped("", f"not counted: {', '.join(named)}")


def _layers(figures: Figures) -> Iterator[Line]:
    for group in figures["groups"]:
        yield from _wrapped(f"{whole(group['count'])} layers", group["label"])
        facts = [f"{billions(group['parameters'])} parameters each"]
        token = group["kv_bytes_per_token"]["fp8"]
        if token:
            limit = group["reach_tokens"]
            until = f" up to {whole(limit)} tokens" if limit is not None else ""
            facts.append(f"KV {shown(token, 'size')} a token{until}")
        if group["state_bytes"]:
            facts.append(f"state {shown(group['state_bytes'], 'size')} a sequence")
        if group["kept"]:
            facts.append(f"not quantised: {', '.join(part.replace('_', ' ') for part in group['kept'])}")
        yield from _wrapped("", ", ".join(facts), style="dim")


def _bytes(figures: Figures) -> Iterator[Line]:
    weights = [f"{name.upper()} {shown(size, 'size')}" for name, size in figures["weight_bytes"].items()]
    yield from _wrapped("weights", ", ".join(weights))
    token = [f"{name.upper()} {shown(size, 'size')}" for name, size in figures["kv_bytes_per_token"].items()]
    yield from _wrapped("KV, a token", ", ".join(token))
    whole_token = figures["kv_bytes_per_token"]["fp8"]
    each = [
        f"tp {tp} {shown(size, 'size')}" + copies(int(tp) * size, whole_token)
        for tp, size in figures["kv_bytes_per_token_per_gpu"]["fp8"].items()
    ]
    yield from _wrapped("on each GPU", ", ".join(each))
    sequences = [
        f"{whole(int(tokens))} tokens {shown(size, 'size')}"
        for tokens, size in figures["sequence_bytes"]["fp8"].items()
    ]
    yield from _wrapped("a sequence", ", ".join(sequences))
    operations = shown(figures["flops_per_token"], "compute").replace("FLOPS", "FLOP")
    yield from _wrapped("compute", f"{operations} a token, without attention to others")


def copies(size: int, token: int) -> str:
    """How often a token's KV is held, where more than once."""
    return f" ({size / token:.2g} copies)" if size > token else ""


def _fits(figures: Figures) -> Iterator[Line]:
    names = list(figures["weight_bytes"])
    found: dict[str, dict[str, Figures]] = {}
    for fit in figures["fits"]:
        found.setdefault(fit["node"], {})[fit["weights"]] = fit
    head = ["fewest GPUs and their KV", *(name.upper() for name in names)]
    rows = [[node, *(_fit(by_name.get(name)) for name in names)] for node, by_name in found.items()]
    first, *rest = aligned([head, *rows], left=1)
    yield [(first.rstrip(), "dim")]
    for line in rest:
        yield [(line.rstrip(), "")]
    yield [(f"{NOTHING} a precision that the GPU has not; tokens in FP8, in sequences of 8192", "dim")]


def _fit(fit: Figures | None) -> str:
    if fit is None:
        return NOTHING
    if fit["tp"] is None:
        return "too large"
    return f"{fit['tp']}: {count_short(fit['kv_tokens'])}"


def _values(figures: Figures) -> Iterator[Line]:
    """What was read, by source."""
    by_source: dict[str, list[str]] = {}
    for leaf in figures["values"]:
        source = f"{leaf['verified']}: {leaf['source']}"
        key = leaf["key"].removeprefix("config.")
        by_source.setdefault(source, []).append(f"{key} {_short(leaf['value'])}")
    if by_source:
        yield []
    for source, values in by_source.items():
        yield [(f"[{source}]", "dim")]
        yield from ([(f"  {line}", "dim")] for line in wrap(", ".join(values), WIDTH - 2))


def _short(value: str) -> str:
    """A list as its length."""
    items = value.split(", ")
    return value if len(items) < 4 else f"({len(items)} items)"


def billions(number: float) -> str:
    """A number of parameters for people."""
    return f"{number / 1e9:.1f} B" if number >= 1e9 else f"{number / 1e6:.1f} M"


def _wrapped(label: str, text: str, style: str = "") -> Iterator[Line]:
    """A label, and text beside it that keeps its column."""
    for position, line in enumerate(wrap(text, WIDTH - INDENT)):
        yield [(f"{label if not position else '':<{INDENT}}", ""), (line, style)]
