"""Writing a form back as YAML: resolved, every default spelt out, units kept.

What is written loads again to an equal form. Ignored: comments, and the order
of keys in the file it came from.
"""

from __future__ import annotations

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


def dump(form: Form, relative_to: Path | str) -> str:
    """The YAML text of a form, as it would be written in a file in the folder `relative_to`."""
    folder = Path(relative_to).resolve()
    values = form.model_dump(exclude_none=True, context={"relative_to": folder})
    return yaml.dump(values, Dumper=Writer, sort_keys=False, allow_unicode=True, width=10**6)
