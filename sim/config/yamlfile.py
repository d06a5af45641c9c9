"""YAML as a tree of nodes with marks; nothing is constructed, so nothing can be run.

Reads what PyYAML's safe loader composes and resolves words itself (see sim.config.scalars). Duplicate keys,
tags, empty values, nesting and sizes beyond reason are mistakes; aliases and `<<` are expanded up to a
bound. Mistakes are collected, so that a file tells all of them at once. Ignored: comments, styles.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import yaml

from sim.base.errors import ConfigError, ConfigErrors, ValueProblem, suggest
from sim.config import scalars
from sim.config.marks import Mark, Node, Scalar, Source
from sim.config.paths import boundary

LARGEST_FILE_BYTES = 4_000_000
MOST_NODES = 20_000
DEEPEST = 60
STANDARD = "tag:yaml.org,2002:"
TOO_DEEP = ("nested too deeply", "write fewer levels; no form has more than a few")
SYNTAX = {
    r"\\t": ("a tab where spaces belong", "indent with spaces"),
    "mapping values are not allowed": (
        "a second ': ' in one line, or a wrong indentation",
        "put a text that contains ': ' in quotes, or align this line with its neighbours",
    ),
    "expected <block end>": ("the indentation does not fit", "align this line with the keys around it"),
    "could not find expected ':'": ("a key without ': '", "write `key: value`, with a space after the colon"),
    "expected a single document": (
        "a second document starts here",
        "keep one document in a file: remove the `---`",
    ),
    "found undefined alias": (
        "an alias without an anchor",
        "define it before as `&name`, or put the text in quotes",
    ),
    "cannot start any token": ("a character that cannot start a value", "put the text in quotes"),
    r"while scanning a quoted scalar|unexpected end of stream": (
        "a quoted text that does not end",
        "close the quotes",
    ),
    r"expected ',' or '[\]}]'": (
        "a list or mapping in brackets goes wrong here",
        "check commas and brackets",
    ),
}


class Pure(yaml.SafeLoader):
    """The safe loader without opinions about words."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own name and type


Fast: type[yaml.SafeLoader]
if yaml.__with_libyaml__:

    class Fast(yaml.CSafeLoader):  # type: ignore[no-redef]
        """The same on libyaml."""

        yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own name and type

else:
    Fast = Pure


def read(path: Path, shown: str, errors: list[ConfigError], root: Path | None = None) -> Node | None:
    """The tree of a file, its mistakes added to `errors`; None where there is no mapping to go on with.

    `shown` is how the user knows the file, `root` what paths in it may not leave, by default its repository.
    """
    text = file_text(path, shown)
    source = Source(shown, path.resolve().parent, root or boundary(path), tuple(split_lines(text)))
    node = parse(text, source, errors)
    if node is None and not errors:
        errors.append(ConfigError(shown, None, None, problem="the file is empty", hint="start with `sim: 1`"))
    if node is not None and not node.is_mapping:
        errors.append(
            node.mark.error(
                "", "the file is not a mapping", "write `key: value` lines, starting with `sim: 1`"
            )
        )
        return None
    return node


def split_lines(text: str) -> list[str]:
    """Lines as YAML counts them."""
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", text)


def file_text(path: Path, shown: str) -> str:
    """The text of a file; what cannot be read is the only mistake then."""

    def fault(problem: str, hint: str) -> ConfigErrors:
        return ConfigErrors([ConfigError(shown, None, None, problem=problem, hint=hint)])

    try:
        if path.is_dir():
            raise fault("is a folder, not a file", "name a YAML file in it")
        if not path.exists():
            raise fault("no such file", nearby(path))
        if not path.is_file() or path.stat().st_size > LARGEST_FILE_BYTES:
            raise fault("is no YAML file", f"name a text file of at most {LARGEST_FILE_BYTES // 10**6} MB")
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise fault(
            f"cannot be read: {getattr(error, 'strerror', None) or error}", "check the path and its rights"
        ) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise fault(f"is not UTF-8 text (first in line {line})", "save the file as UTF-8") from None


def nearby(path: Path, besides: Collection[Path] = (), start: str = "in the current folder") -> str:
    """The remedy for a file that is not there; `start` says where its path begins."""
    folder = path.parent
    try:
        files = sorted(entry for entry in folder.iterdir() if entry.suffix in {".yaml", ".yml"})
    except OSError:
        return f"there is no folder '{folder}' to look into"
    near = suggest(path.name, [file.name for file in files if file not in besides])
    return f"did you mean '{near}'?" if near else f"check the path; it starts {start}"


def parse(text: str, source: Source, errors: list[ConfigError]) -> Node | None:
    """The tree of a text, its mistakes added to `errors`; None for no tree at all."""
    try:
        composed = compose(text)
    except yaml.MarkedYAMLError as error:
        errors.append(syntax_error(error, source))
        return None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        mark = Mark(source, line, column)
        errors.append(mark.error("", f"a control character (#x{ord(text[error.position]):02x})", "remove it"))
        return None
    except RecursionError:
        errors.append(Mark(source).error("", *TOO_DEEP))
        return None
    return None if composed is None else Tree(source, errors).node(composed, "", 0)


def compose(text: str) -> yaml.Node | None:
    """PyYAML's node graph: fast where all is well, by the pure parser where a good message is needed."""
    try:
        return yaml.compose(text, Loader=Fast)
    except (yaml.YAMLError, UnicodeError) as error:
        if "maximum nesting depth" in str(error):
            raise RecursionError from None
        return yaml.compose(text, Loader=Pure)


def syntax_error(error: yaml.MarkedYAMLError, source: Source) -> ConfigError:
    """PyYAML's complaint in our words."""
    complaint = f"{error.context or ''} {error.problem or ''}"
    marks = [
        Mark(source, spot.line + 1, spot.column + 1)
        for spot in (error.problem_mark, error.context_mark)[:: -1 if "expected ':'" in complaint else 1]
        if spot is not None
    ]
    mark = next((mark for mark in marks if mark.excerpt() is not None), Mark(source))
    for pattern, (problem, hint) in SYNTAX.items():
        if re.search(pattern, complaint):
            return mark.error("", problem, hint)
    return mark.error(
        "", f"not valid YAML: {complaint.strip()}", "put the text in quotes, or check the indentation"
    )


class Tree:
    """Turns PyYAML's graph into nodes, and notes the mistakes on the way."""

    def __init__(self, source: Source, errors: list[ConfigError]) -> None:
        self.source, self.errors = source, errors
        self.made = 0
        self.open: set[int] = set()  # the nodes being turned, to find those that hold themselves

    def mark(self, node: yaml.Node) -> Mark:
        """Where a node starts."""
        return Mark(self.source, node.start_mark.line + 1, node.start_mark.column + 1)

    def node(self, node: yaml.Node, path: str, depth: int, at: Mark | None = None) -> Node:
        """One node with all below it, in bounds."""
        mark = at or self.mark(node)
        self.made += 1
        stop = None
        if self.made > MOST_NODES:
            stop = ("too many values, those behind aliases counted at each use", "write out what is needed")
        elif id(node) in self.open:
            stop = ("an alias inside of what it stands for", "write it out")
        elif depth > DEEPEST:
            stop = TOO_DEEP
        if stop is not None:
            raise ConfigErrors([*self.errors, mark.error("", *stop)])
        if node.tag.removeprefix(STANDARD) not in {"str", "seq", "map"}:
            tag = node.tag.replace(STANDARD, "!!")
            self.errors.append(mark.error(path, f"a tag ({tag})", "remove it: tags have no meaning here"))
        self.open.add(id(node))
        value = self.value(node, path, depth, mark)
        self.open.discard(id(node))
        return Node(value, mark)

    def value(
        self, node: yaml.Node, path: str, depth: int, mark: Mark
    ) -> Scalar | list[Node] | dict[str, Node]:
        """What a node holds."""
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.node(item, joined(path, str(i)), depth + 1) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path, mark)
        raise TypeError(f"PyYAML composed a {type(node).__name__}")

    def scalar(self, node: yaml.ScalarNode, path: str, mark: Mark) -> Scalar:
        """The value of a scalar: quoted ones are text."""
        text: str = node.value
        if node.style:  # None or empty for plain, by parser
            return text
        if not text:
            hint = "write a value, or `null` for the default; remove the key if it is not needed"
            self.errors.append(mark.error(path, "has no value", hint))
            return text
        try:
            return scalars.resolve(text)
        except ValueProblem as problem:
            self.errors.append(mark.error(path, problem.problem, problem.hint))
            return text

    def mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Node]:
        """The items of a mapping; what is written here wins over what `<<` brings."""
        items: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.errors.append(self.mark(key).error(path, "a key must be a word", "put it in quotes"))
            elif key.value == "<<" and not key.style:
                merged |= self.merged(value, path, depth)
            elif key.value in items:
                hint = f"it is already in line {items[key.value].mark.line}; keep one of the two"
                problem = "the key is given twice"
                self.errors.append(self.mark(key).error(joined(path, key.value), problem, hint))
            else:
                below = joined(path, key.value)
                items[key.value] = self.node(value, below, depth + 1, self.mark(key))
        return merged | items

    def merged(self, value: yaml.Node, path: str, depth: int) -> dict[str, Node]:
        """What `<<` brings: one mapping, or a list of them of which the first wins."""
        nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
        items: dict[str, Node] = {}
        for node in nodes:
            if isinstance(node, yaml.MappingNode):
                items = self.node(node, path, depth + 1).items | items
            else:
                self.errors.append(self.mark(node).error(path, "`<<` takes a mapping", "write `<<: *name`"))
        return items


def joined(path: str, key: str) -> str:
    """A dotted path with one more key."""
    return f"{path}.{key}" if path else key
