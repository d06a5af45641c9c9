"""How trouble ends a command: words on stderr and an exit code, a traceback only when asked for."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from sim.base.errors import SimError, SimulationError

GOOD, MISSED, YOUR_INPUT, OUR_BUG, INTERRUPTED = 0, 1, 2, 3, 130
REMEDIES: dict[int, str] = {
    errno.ENOENT: "check the path; it starts in the current folder, and folders on the way must be there",
    errno.ENOTDIR: "a part of the path is a file; name a folder in its place",
    errno.EISDIR: "name a file, not a folder",
    errno.EACCES: "name what you have the right to read, and folders that you may write in",
    errno.EPERM: "name what you have the right to read, and folders that you may write in",
    errno.EROFS: "name a folder that you may write in",
    errno.ENOSPC: "make room on the disk, or name a folder on another",
    errno.ENAMETOOLONG: "use a shorter name",
}


def answered(command: Callable[[], object], with_traceback: bool = False) -> int:
    """Run a command and return its exit code, whatever happens in it."""
    try:
        code = _code_of(command)
        sys.stdout.flush()
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return _pipe_closed()
    except Exception as error:
        if with_traceback:
            traceback.print_exc()
        return explain(error)
    return code


def explain(error: Exception) -> int:
    """Put an error into words and return the exit code that it stands for."""
    if isinstance(error, SimError):
        say(str(error))
        return error.exit_code
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        remedy = REMEDIES.get(error.errno or 0, "check the path and its rights")
        say(f"{place}{error.strerror or error}\n  hint: {remedy}")
        return YOUR_INPUT
    broken = SimulationError(f"internal error: {type(error).__name__}: {error}")
    say(str(broken))
    say("  --debug shows the traceback")
    return broken.exit_code


def say(text: str) -> None:
    """Write to stderr, in plain signs where its encoding has no others; nobody need be listening."""
    encoding = sys.stderr.encoding or "utf-8"
    with suppress(BrokenPipeError):
        print(text.encode(encoding, "replace").decode(encoding), file=sys.stderr, flush=True)


def _code_of(command: Callable[[], object]) -> int:
    """Run a command that may end by SystemExit; Typer turns a closed pipe into one, which is turned back."""
    try:
        command()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        if isinstance(stop.code, int):
            return stop.code
        return GOOD if stop.code is None else YOUR_INPUT
    return GOOD


def _pipe_closed() -> int:
    """Whoever read our output has seen enough; keep Python from complaining about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return GOOD
