"""From a tree to a form, and from pydantic's complaints to mistakes at the user's lines.

Every kind of complaint that the forms can raise has its own words and remedy here; what is without one
gets the description of the field as a remedy.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from sim.base.errors import ConfigError, ConfigErrors, ValueProblem, did_you_mean, listed, shown, suggest
from sim.config.document import UNKNOWN_KEY, Document
from sim.config.form import Form, RootForm
from sim.config.marks import Node

F = TypeVar("F", bound=RootForm)
Complaint = Mapping[str, Any]
Words = tuple[str, str | None]
YAML_1_1_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def validate(form: type[F], document: Document, errors: list[ConfigError]) -> F:
    """The form of a document; raises its mistakes together with those found before."""
    try:
        made = form.model_validate(document.plain())
    except ValidationError as failure:
        errors = [*errors, *Complaints(form, document, failure).errors()]
    if errors:
        raise ConfigErrors(ordered(errors, document.overrides))
    made._document = document
    return made


def ordered(errors: Iterable[ConfigError], overrides: Sequence[str] = ()) -> list[ConfigError]:
    """Mistakes by file and line, then by override as given; each spot once, with the first said about it."""
    spots: dict[object, ConfigError] = {}
    for error in errors:
        place = (error.file, error.line, error.column, error.key)
        spots.setdefault(place if error.line else str(error), error)
    files = dict.fromkeys(error.file for error in spots.values() if error.file not in overrides)
    rank = {name: position for position, name in enumerate((*files, *overrides))}
    return sorted(spots.values(), key=lambda error: (rank[error.file], error.line or 0, error.column or 0))


class Complaints:
    """What pydantic says about a document, in our words."""

    def __init__(self, form: type[Form], document: Document, failure: ValidationError) -> None:
        self.form, self.document = form, document
        self.raw = failure.errors(include_url=False)

    def errors(self) -> list[ConfigError]:
        """One mistake for each place."""
        by_path: dict[tuple[str, ...], list[Complaint]] = {}
        for complaint in self.raw:
            by_path.setdefault(self.path(complaint), []).append(complaint)
        unknown = [path for path, raw in by_path.items() if raw[0]["type"] == "extra_forbidden"]
        return [
            self.error(path, self.closest(path, complaints))
            for path, complaints in by_path.items()
            if not (complaints[0]["type"] == "missing" and self.is_misspelt(path, unknown))
        ]

    def path(self, complaint: Complaint) -> tuple[str, ...]:
        """The place of a complaint in the document: pydantic's, without its names of alternatives."""
        node: Node | None = self.document.root
        path: list[str] = []
        location = [str(part) for part in complaint["loc"]]
        for position, key in enumerate(location):
            below = node.child(key) if node is not None else None
            is_absent_key = position == len(location) - 1 and complaint["type"] == "missing"
            if below is not None or is_absent_key:
                path.append(key)
                node = below
        return tuple(path)

    def is_misspelt(self, path: tuple[str, ...], unknown: Iterable[tuple[str, ...]]) -> bool:
        """Whether a missing key stands beside an unknown one that means it."""
        return any(other[:-1] == path[:-1] and suggest(other[-1], [path[-1]]) for other in unknown)

    def closest(self, path: tuple[str, ...], complaints: list[Complaint]) -> Complaint:
        """Of the complaints of alternatives at one place, the one that fits what is written."""
        written = self.written(path)
        is_word = isinstance(written, str) and written.lower() in YAML_1_1_BOOLEANS
        preferred = "bool_type" if is_word else "value_error"
        return next((complaint for complaint in complaints if complaint["type"] == preferred), complaints[0])

    def written(self, path: tuple[str, ...]) -> object:
        """What is written at a place, without what is below it."""
        *_, node = self.document.root.walk(path)
        return node.value

    def latest(self, paths: list[tuple[str, ...]]) -> tuple[str, ...]:
        """Of some places, the one written last: overrides come after files."""

        def rank(path: tuple[str, ...]) -> tuple[bool, int, int]:
            *_, node = self.document.root.walk(path)
            return not node.mark.source.is_file, node.mark.line, node.mark.column

        return max(paths, key=rank)

    def error(self, path: tuple[str, ...], complaint: Complaint) -> ConfigError:
        """A complaint in our words, at its place."""
        words = WORDS.get(complaint["type"])
        problem, hint = words(self, path, complaint) if words else other(complaint)
        cause = complaint.get("ctx", {}).get("error")
        if isinstance(cause, ValueProblem) and cause.keys:
            path = self.latest([(*path, *key.split(".")) for key in cause.keys])
        field = field_at(self.form, path)
        if hint is None and field is not None and field.description:
            hint = f"{path[-1]}: {field.description}"
        return self.document.error(path, problem, hint)


def other(complaint: Complaint) -> Words:
    """The words for a complaint that has none of its own."""
    message: str = complaint["msg"]
    return message[:1].lower() + message[1:], None


def unknown_key(complaints: Complaints, path: tuple[str, ...], complaint: Complaint) -> Words:
    """A key that the form does not have."""
    if "." in path[-1]:
        return UNKNOWN_KEY, "a dotted key goes into the tree only in a patch: `extends`, `variants` or --set"
    form = form_at(complaints.form, path[:-1])
    return UNKNOWN_KEY, did_you_mean(path[-1], fields_of(form)) if form else None


def missing(complaints: Complaints, path: tuple[str, ...], complaint: Complaint) -> Words:
    """A key that the form must have."""
    field = field_at(complaints.form, path)
    meaning = f": {field.description}" if field is not None and field.description else ""
    if complaints.document.root.items and len(list(complaints.document.root.walk(path))) == len(path) + 1:
        return "must not be null", f"write a value{meaning}"
    choices = choices_of(field.annotation if field else None)
    value = f": {choices[0]}" if len(choices) == 1 else ""
    return "missing key", f"add `{path[-1]}{value}`{meaning}"


def wrong_choice(complaints: Complaints, path: tuple[str, ...], complaint: Complaint) -> Words:
    """A word that is not one of a few."""
    field = field_at(complaints.form, path)
    choices = [str(choice) for choice in choices_of(field.annotation if field else None)]
    written = shown(complaints.written(path))
    if not choices:
        return f"{written} is not allowed here", None
    if len(choices) == 1:
        return f"must be {choices[0]}, not {written}", None
    near = suggest(written.strip("'"), choices)
    hint = f"did you mean '{near}'?" if near else f"write {listed(choices, 'or')}"
    return f"{written} is not one of {', '.join(choices)}", hint


def wants(what: str) -> Callable[[Complaints, tuple[str, ...], Complaint], Words]:
    """The words for a value of the wrong kind."""

    def words(complaints: Complaints, path: tuple[str, ...], complaint: Complaint) -> Words:
        written = complaints.written(path)
        return f"must be {what}, not {shown(written)}", remedy(what, written, complaints, path)

    return words


def remedy(what: str, written: object, complaints: Complaints, path: tuple[str, ...]) -> str | None:
    """How a value of the wrong kind becomes one of the right kind."""
    if what == TEXT and isinstance(written, int | float):
        return f"put it in quotes: '{str(written).lower() if isinstance(written, bool) else written}'"
    if what == BOOLEAN and isinstance(written, str) and written.lower() in YAML_1_1_BOOLEANS:
        return f"write {YAML_1_1_BOOLEANS[written.lower()]}"
    if what == MAPPING:
        form = form_at(complaints.form, path)
        if form and "name" in fields_of(form) and isinstance(written, str):
            return f"write {path[-1]}: {{name: {written}}}"
        return f"its keys are {listed(list(fields_of(form)))}" if form else None
    if what == LIST:
        return (
            f"write it in brackets: [{written}]" if isinstance(written, str) else "start each item with `- `"
        )
    if what in {WHOLE, NUMBER} and isinstance(written, str):
        return number_remedy(written, what)
    return None


def number_remedy(written: str, what: str) -> str | None:
    """How a text becomes the number that it looks like."""
    plain = written.strip().replace("_", "").replace(",", "")
    try:
        meant = int(plain, 0) if plain[:2].lower() in {"0x", "0o", "0b"} else float(plain)
    except ValueError:
        return None
    if not math.isfinite(meant) or (what == WHOLE and meant != int(meant)):
        return None
    number = int(meant) if meant == int(meant) else meant
    return f"write {number}, without quotes" if plain == written.strip() else f"write {number}"


def bound(relation: str, name: str) -> Callable[[Complaints, tuple[str, ...], Complaint], Words]:
    """The words for a number out of its bounds."""

    def words(complaints: Complaints, path: tuple[str, ...], complaint: Complaint) -> Words:
        limit = complaint["ctx"][name]
        return f"must be {relation} {limit:g}, not {shown(complaints.written(path))}", None

    return words


def too_short(complaints: Complaints, path: tuple[str, ...], complaint: Complaint) -> Words:
    """A list with too few items."""
    return "the list is empty", "start each item with `- `"


def bad_pattern(complaints: Complaints, path: tuple[str, ...], complaint: Complaint) -> Words:
    """A name with characters that a name may not have."""
    written = str(complaints.written(path))
    better = re.sub(r"[^a-z0-9_]+", "-", written.lower()).strip("-_")[:40]
    sample = f", such as '{better}'" if re.match(r"[a-z]", better) else ", such as 'chat-1'"
    return f"{shown(written)} is no name", f"use letters, digits, - and _, starting with a letter{sample}"


def bad_value(complaints: Complaints, path: tuple[str, ...], complaint: Complaint) -> Words:
    """A complaint of our own validators."""
    cause = complaint["ctx"]["error"]
    return (cause.problem, cause.hint) if isinstance(cause, ValueProblem) else (str(cause), None)


TEXT, BOOLEAN, WHOLE, NUMBER = "text", "true or false", "a whole number", "a number"
MAPPING, LIST = "a mapping", "a list"
WORDS: Mapping[str, Callable[[Complaints, tuple[str, ...], Complaint], Words]] = {
    "extra_forbidden": unknown_key,
    "missing": missing,
    "literal_error": wrong_choice,
    "string_type": wants(TEXT),
    "bool_type": wants(BOOLEAN),
    "int_type": wants(WHOLE),
    "int_from_float": wants(WHOLE),
    "float_type": wants(NUMBER),
    "finite_number": wants(NUMBER),
    "model_type": wants(MAPPING),
    "model_attributes_type": wants(MAPPING),
    "dict_type": wants(MAPPING),
    "list_type": wants(LIST),
    "greater_than": bound("above", "gt"),
    "greater_than_equal": bound("at least", "ge"),
    "less_than": bound("below", "lt"),
    "less_than_equal": bound("at most", "le"),
    "too_short": too_short,
    "string_pattern_mismatch": bad_pattern,
    "value_error": bad_value,
}


def parts_of(annotation: Any) -> list[Any]:
    """The alternatives of an annotation, without what is only said about them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return parts_of(get_args(annotation)[0])
    if origin in {Union, types.UnionType}:
        return [part for alternative in get_args(annotation) for part in parts_of(alternative)]
    return [annotation]


def choices_of(annotation: Any) -> list[object]:
    """The values that a Literal allows."""
    return [
        choice for part in parts_of(annotation) if get_origin(part) is Literal for choice in get_args(part)
    ]


def fields_of(form: type[Form]) -> dict[str, FieldInfo]:
    """The fields of a form by the keys that a user writes."""
    return {field.alias or name: field for name, field in form.model_fields.items()}


def field_at(form: type[Form], path: tuple[str, ...]) -> FieldInfo | None:
    """The field that a path of a document leads to; None for an item of a list, or where there is none."""
    if not path:
        return None
    parent = form_at(form, path[:-1])
    return fields_of(parent).get(path[-1]) if parent else None


def form_at(form: type[Form], path: tuple[str, ...]) -> type[Form] | None:
    """The form of what is written at a path."""
    here: list[Any] = [form]
    for key in path:
        forms = [part for part in here if isinstance(part, type) and issubclass(part, Form)]
        items = [get_args(part)[0] for part in here if get_origin(part) is list]
        fields = [fields_of(part)[key].annotation for part in forms if key in fields_of(part)]
        here = [part for annotation in (*fields, *items) for part in parts_of(annotation)]
    return next((part for part in here if isinstance(part, type) and issubclass(part, Form)), None)
