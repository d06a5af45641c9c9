"""Form: the base of everything that a user may write.

Forms are frozen, refuse unknown keys, and take values as they are meant: no text for a number, no
number for a text. Their defaults are written as a user would write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr

from sim.base.errors import ValueProblem
from sim.config.document import Document

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,79}$")]
"""A name that the user invents: it has to fit into a dotted key and into the name of a folder."""


class Form(BaseModel):
    """A mapping with known keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        validate_default=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, wherever it is written."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # forms hold lists


class RootForm(Form):
    """A form that a file holds as a whole; it remembers where its values are written."""

    _document: Document | None = PrivateAttr(None)

    @property
    def document(self) -> Document:
        """Where the values are written; made from the values themselves where that is nowhere."""
        if self._document is None:
            self._document = Document.of_values(self.model_dump(exclude_none=True), self.kind())
        return self._document

    @classmethod
    def kind(cls) -> str:
        """What such a file is called."""
        return cls.__name__.lower()

    def replace(self, changes: Mapping[str, object]) -> Self:
        """A changed copy, checked like a file: `scenario.replace({"pools.prefill.replicas": 300})`."""
        from sim.config.load import replaced  # noqa: PLC0415 - loading needs the forms first

        return replaced(self, changes)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy as of pydantic, which no longer knows where it is written when it is changed."""
        copy = super().model_copy(update=update, deep=deep)
        if update:
            copy._document = None
        return copy


Named = TypeVar("Named", bound="NamedForm")


class NamedForm(Form):
    """An item of a list that can be addressed by its name."""

    name: Name


def with_own_names(items: list[Named]) -> list[Named]:
    """Refuse two items of one name."""
    seen: dict[str, int] = {}
    for position, item in enumerate(items):
        if item.name in seen:
            raise ValueProblem(
                f"'{item.name}' is the name of two items", "give each its own", [f"{position}.name"]
            )
        seen[item.name] = position
    return items


NamedList = Annotated[list[Named], Field(min_length=1), AfterValidator(with_own_names)]
