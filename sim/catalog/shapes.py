"""What a config.json says of a model."""

from __future__ import annotations

from typing import TypedDict

from sim.catalog.layer import Layer


class Shapes(TypedDict):
    """What a config.json says of a model, as keyword arguments of Model."""

    family: str
    hidden: int
    vocab: int
    max_context: int
    tied_embeddings: bool
    stack: tuple[Layer, ...]
    native: str
    left_out: tuple[str, ...]
