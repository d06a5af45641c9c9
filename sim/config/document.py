"""Document: the values of a file after all patches, and where each of them is written.

Later stages hold names against the catalogue and report through `error`, so that a mistake that only they
can find still points at the user's line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sim.base.errors import ConfigError
from sim.config.marks import Mark, Node, Source, plain
from sim.config.overrides import node_of

UNKNOWN_KEY = "unknown key"


@dataclass(frozen=True)
class Document:
    """A tree of nodes.

    `path` is the file it was read from, `variants` the names of those that the file offers, `overrides` what
    was laid over it, in order: `--variant slow-net`, `--set run.seed=2`.
    """

    root: Node
    path: Path | None = None
    variants: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()

    @classmethod
    def of_values(cls, values: Mapping[str, object], name: str) -> Document:
        """A document of values that are written nowhere."""
        return cls(node_of(values, Mark(Source(name, Path.cwd()))))

    def plain(self) -> object:
        """The tree as plain values, without what is null."""
        return plain(self.root)

    def error(self, path: str | Sequence[str], problem: str, hint: str | None = None) -> ConfigError:
        """A mistake at a dotted path, such as `pools.0.tp`; items of lists by index or name.

        Where the path is not written (a default), it points at the nearest thing above that is.
        """
        keys = keys_of(path)
        passed = list(self.root.walk(keys))
        mark = passed[-1].mark
        if not mark.source.is_file:
            if problem == UNKNOWN_KEY:
                return mark.error("", f"{problem} '{keys[-1]}'", hint)
            if mark.is_named and len(passed) == len(keys) + 1:
                return mark.error("", problem, hint)
        return mark.error(".".join(keys), problem, hint)

    def where(self, path: str) -> str:
        """The place of a dotted path, for what is no mistake: `chat.yaml:12:5`, or the override."""
        *_, node = self.root.walk(keys_of(path))
        source = node.mark.source
        return f"{source.name}:{node.mark.line}:{node.mark.column}" if source.is_file else source.name


def keys_of(path: str | Sequence[str]) -> tuple[str, ...]:
    """The keys of a path, dotted or apart."""
    return tuple(key for key in path.split(".") if key) if isinstance(path, str) else tuple(path)
