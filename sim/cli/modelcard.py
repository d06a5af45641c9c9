"""`sim show model`: what a model is made of, what it takes, and where it fits; as a screen or as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sim.base.errors import ConfigError, ConfigErrors
from sim.catalog import Catalog, Model, load_catalog
from sim.catalog.huggingface.file import ENDING, model_of_file
from sim.catalog.precision import HALVES
from sim.report.model import model_screen
from sim.report.text import show
from sim.timing.fits import fits

Figures = dict[str, Any]
WEIGHTS = ("bf16", "fp8", "fp4")
KV = ("bf16", "fp8")
DEGREES = (1, 2, 4, 8, 16)
SEQUENCES = (8192, 131_072)


def show_model(name: str, as_json: bool) -> None:
    """One model of the catalogue, or of a config.json."""
    catalog = load_catalog()
    figures = described(catalog, found(catalog, name))
    if as_json:
        from sim.results.store import json_text  # noqa: PLC0415 - slow to import

        sys.stdout.write(json_text(figures))
    else:
        show(model_screen(figures), sys.stdout)


def found(catalog: Catalog, name: str) -> Model:
    """The model of a name or of a file."""
    if not name.endswith(ENDING):
        return catalog.models[name]
    if not Path(name).is_file():
        problem, hint = "no such file", "see `sim list models` for models of the catalogue"
        raise ConfigErrors([ConfigError(name, None, None, problem=problem, hint=hint)])
    return model_of_file(Path(name))


def described(catalog: Catalog, model: Model) -> Figures:
    """The figures of a model, as JSON has them."""
    native = model.native in HALVES
    precisions = WEIGHTS if native or model.native in WEIGHTS else (*WEIGHTS, model.native)
    degrees = [tp for tp in DEGREES if all(number % tp == 0 for number, _ in model.splits)]
    return {
        "name": model.name,
        "title": model.title,
        "family": model.family,
        "native": model.native,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "published": dict(model.published),
        "hidden": model.hidden,
        "vocab": model.vocab,
        "max_context": model.max_context,
        "tied_embeddings": model.tied_embeddings,
        "left_out": list(model.left_out),
        "layers": model.layers,
        "groups": _groups(model),
        "weight_bytes": {name: model.weight_bytes(name) for name in precisions},
        "kv_bytes_per_token": {name: model.kv_bytes_per_token(name) for name in KV},
        "kv_bytes_per_token_per_gpu": {
            name: {str(tp): model.kv_bytes_per_token_per_gpu(name, tp) for tp in degrees} for name in KV
        },
        "kv_heads": model.kv_heads,
        "sequence_bytes": {
            name: {str(tokens): model.kv_bytes(tokens, name) for tokens in SEQUENCES} for name in KV
        },
        "flops_per_token": model.flops(1) - 2 * model.vocab * model.hidden,
        "fits": _fits(catalog, model, precisions),
        "values": _values(model),
    }


def _groups(model: Model) -> list[Figures]:
    return [
        {
            "count": count,
            "label": layer.label,
            "parameters": layer.parameters,
            "kept": list(layer.kept),
            "kv_bytes_per_token": {name: layer.kv_bytes(2 if name == "bf16" else 1, 1) for name in KV},
            "reach_tokens": layer.attention.reach.limit if layer.attention is not None else None,
            "state_bytes": layer.state_bytes(1),
        }
        for layer, count in model.groups
    ]


def _fits(catalog: Catalog, model: Model, precisions: tuple[str, ...]) -> list[Figures]:
    return [
        {"node": fit.node, "weights": fit.weights, "tp": fit.tp, "kv_tokens": fit.kv_tokens}
        for fit in fits(catalog, model, precisions, "fp8")
    ]


def _values(model: Model) -> list[Figures]:
    return [
        {"key": key, "value": leaf.text, "source": leaf.source, "verified": leaf.verified, "note": leaf.note}
        for key, leaf in model.provenance.items()
    ]
