"""A model from a config.json given as a file; every mistake is told with its line.

JSON is read by the YAML parser, which knows the place of each value; tabs, which only JSON allows between
values, count as single spaces.
"""

from __future__ import annotations

from pathlib import Path

from sim.base.errors import ConfigError, ConfigErrors
from sim.catalog.huggingface.read import shapes
from sim.catalog.model import Model
from sim.config import yamlfile
from sim.config.marks import Source

ENDING = ".json"


def model_of_file(path: Path, shown: str | None = None) -> Model:
    """Read a config.json; `shown` is how the user knows the file. Raises ConfigErrors."""
    name = shown or str(path)
    errors: list[ConfigError] = []
    text = yamlfile.file_text(path, name).replace("\t", " ")
    source = Source(name, path.resolve().parent, None, tuple(yamlfile.split_lines(text)))
    node = yamlfile.parse(text, source, errors)
    if node is None or not node.is_mapping:
        hint = 'a config.json starts with { and holds "model_type" and the shapes'
        raise ConfigErrors(errors or [ConfigError(name, 1, 1, problem="not a JSON object", hint=hint)])
    if errors:
        raise ConfigErrors(errors)
    try:
        found = shapes(node)
    except ConfigError as wrong:
        raise ConfigErrors([wrong]) from None
    title = path.parent.name if path.stem == "config" else path.stem
    return Model(name=name, title=title, provenance={}, **found)
