"""Registries: behaviour under a name, so that a function in one file becomes a value in YAML.

`router = Registry[Router]("router")` makes the decorator `@router("least_loaded")`. A name of the form
`package.module:thing` is imported, which lets users bring their own.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

from sim.base.errors import UnknownNameError

T = TypeVar("T")
Registered = TypeVar("Registered")


class Registry(Generic[T]):
    """Things of one kind by name; unknown names are answered with the nearest known one."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, T] = {}

    def __call__(self, name: str) -> Callable[[Registered], Registered]:
        """Register the decorated function or class under a name."""
        if name in self._things:
            raise ValueError(f"{self.kind} '{name}' is registered twice")

        def keep(thing: Registered) -> Registered:
            self._things[name] = cast("T", thing)
            return thing

        return keep

    def __getitem__(self, name: str) -> T:
        if name in self._things:
            return self._things[name]
        if ":" in name:
            return self._imported(name)
        raise UnknownNameError(self.kind, name, self.names())

    def __contains__(self, name: str) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._things)

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._things))

    def summary(self, name: str) -> str:
        """The first line of the docstring of the thing of that name."""
        return (inspect.getdoc(self[name]) or "").partition("\n")[0]

    def _imported(self, name: str) -> T:
        module_name, _, attribute = name.partition(":")
        try:
            module = importlib.import_module(module_name)
        except (ImportError, ValueError):
            raise UnknownNameError(f"{self.kind} module", module_name, self.names()) from None
        try:
            return cast("T", getattr(module, attribute))
        except AttributeError:
            public = [known for known in vars(module) if not known.startswith("_")]
            raise UnknownNameError(f"{self.kind} of module {module_name}", attribute, public) from None
