"""Writing a form back as YAML: resolved, every default spelt out, units kept.

What is written loads again to an equal form. Ignored: comments, and the order
of keys in the file it came from.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from sim.base.errors import ValueProblem
from sim.config import scalars
from sim.config.form import Form

PLAIN = "tag:yaml.org,2002:str"


class Writer(yaml.SafeDumper):
    """Writes words so that sim.config.scalars reads the same ones; has no opinion of its own about them."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own name and type

    def ignore_aliases(self, data: object) -> bool:
        """Write equal values out instead of referring to the first."""
        return True


def write_text(writer: Writer, text: str) -> yaml.ScalarNode:
    """A text: in quotes where it would be read as something else without, escaped where it cannot be seen."""
    if not text.isprintable():
        return writer.represent_scalar(PLAIN, text, style='"')
    try:
        is_plain = text != "" and scalars.resolve(text) == text
    except ValueProblem:
        is_plain = False
    return writer.represent_scalar(PLAIN, text, style=None if is_plain else "'")


def write_number(writer: Writer, number: float) -> yaml.ScalarNode:
    """A number, or true and false, in the shortest exact form."""
    return writer.represent_scalar(PLAIN, repr(number).lower())


Writer.add_representer(str, write_text)
for kind in (bool, int, float):
    Writer.add_representer(kind, write_number)


class RowWriter(Writer):
    """Writes the items of a list one a line, unless they hold further mappings."""

    def represent_sequence(
        self, tag: str, sequence: Iterable[object], flow_style: bool | None = None
    ) -> yaml.SequenceNode:
        """A list whose items are rows."""
        node = super().represent_sequence(tag, sequence, flow_style)
        for item in node.value:
            if isinstance(item, yaml.MappingNode) and not any(map(holds_mappings, values_of(item))):
                item.flow_style = True
        return node


def values_of(node: yaml.Node) -> list[yaml.Node]:
    """The nodes directly below a node, without keys."""
    return [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else list(node.value)


def holds_mappings(node: yaml.Node) -> bool:
    """Whether a node is a mapping, or a list with one in it."""
    is_list = isinstance(node, yaml.SequenceNode)
    return isinstance(node, yaml.MappingNode) or (is_list and any(map(holds_mappings, node.value)))


def dump(form: Form, relative_to: Path | str, in_rows: bool = False) -> str:
    """The YAML text of a form, as it would be written in a file in the folder `relative_to`.

    `in_rows` puts each item of a list on one line, for tables.
    """
    folder = Path(relative_to).resolve()
    values = form.model_dump(exclude_none=True, context={"relative_to": folder})
    writer = RowWriter if in_rows else Writer
    return yaml.dump(values, Dumper=writer, sort_keys=False, allow_unicode=True, width=10**6)
