"""What can be wrong with a trace, said with its file and line."""

from __future__ import annotations

from sim.base.errors import ConfigError


class TraceError(ConfigError):
    """A trace, or one line of it, that cannot be used: `file:line: problem` and the remedy."""

    def __init__(self, file: str, line: int | None, problem: str, hint: str) -> None:
        super().__init__(file, line, None, problem=problem, hint=hint)
