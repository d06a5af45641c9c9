"""Values that a user writes as one text and that mean more than a text: read by `parse`, written by `str`."""

from __future__ import annotations

from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class Written:
    """The base of such a value; what an editor should know of it is its own affair."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> Self:
        """The value that a text states; raises ValueProblem."""
        raise TypeError(f"{cls.__name__} has no form in text")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read from text, written as text."""
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )
