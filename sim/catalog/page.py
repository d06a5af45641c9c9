"""One YAML file of the catalogue with the place of every node, so that a mistake can be pointed at.

Only the safe loader's grammar is used, scalars stay text, and nothing is converted here: units and types are
the business of the entries. PyYAML's C parser is used where it is there.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from sim.base.errors import ConfigError

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Page:
    """The text of a catalogue file, and its entries as YAML nodes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    def entries(self) -> list[yaml.MappingNode]:
        """Return the nodes of the list that the file holds, one for each entry."""
        try:
            root = yaml.compose(self.text, Loader=Loader)
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from None
        if not isinstance(root, yaml.SequenceNode):
            raise ConfigError(
                str(self.path), 1, 1, problem="not a list of entries", hint="start with `- name: ...`"
            )
        for node in root.value:
            if not isinstance(node, yaml.MappingNode):
                raise self.error(node, "", "not an entry", "an entry starts with `- name: ...`")
        return list(root.value)

    def error(self, node: yaml.Node, key: str, problem: str, hint: str | None = None) -> ConfigError:
        """Report a mistake at a node of this page."""
        line, column = node.start_mark.line, node.start_mark.column
        return ConfigError(
            str(self.path),
            line + 1,
            column + 1,
            key=key,
            problem=problem,
            hint=hint,
            excerpt=self._excerpt(line, column),
        )

    def _syntax_error(self, error: yaml.MarkedYAMLError) -> ConfigError:
        mark = error.problem_mark or error.context_mark
        if mark is None:
            return ConfigError(str(self.path), None, None, problem=f"not YAML: {error.problem}")
        place = (mark.line + 1, mark.column + 1)
        excerpt = self._excerpt(mark.line, mark.column)
        return ConfigError(str(self.path), *place, problem=f"not YAML: {error.problem}", excerpt=excerpt)

    def _excerpt(self, line: int, column: int) -> str:
        lines = self.text.splitlines()
        shown = lines[line] if line < len(lines) else ""
        return f"{line + 1:>4} | {shown}\n{' ' * (7 + column)}^"
