"""How trouble ends a command: words on stderr and an exit code, a traceback only when asked for."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from sim.base.errors import SimError, SimulationError

GOOD, MISSED, YOUR_INPUT, OUR_BUG, INTERRUPTED = 0, 1, 2, 3, 130


def answered(command: Callable[[], object], with_traceback: bool = False) -> int:
    """Run a command and return its exit code, whatever happens in it."""
    try:
        command()
    except SystemExit as stop:
        return _code_of(stop)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return _pipe_closed()
    except Exception as error:
        if with_traceback:
            traceback.print_exc()
        return explain(error)
    return GOOD


def explain(error: Exception) -> int:
    """Put an error into words and return the exit code that it stands for."""
    if isinstance(error, SimError):
        say(str(error))
        return error.exit_code
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        say(f"{place}{error.strerror or error}")
        return YOUR_INPUT
    broken = SimulationError(f"internal error: {type(error).__name__}: {error}")
    say(str(broken))
    say("  --debug shows the traceback")
    return broken.exit_code


def say(text: str) -> None:
    """Write to stderr, in plain signs where its encoding has no others."""
    print(
        text.encode(sys.stderr.encoding or "utf-8", "replace").decode(sys.stderr.encoding or "utf-8"),
        file=sys.stderr,
    )


def _code_of(stop: SystemExit) -> int:
    if stop.code is None:
        return GOOD
    return stop.code if isinstance(stop.code, int) else YOUR_INPUT


def _pipe_closed() -> int:
    """Whoever read our output has seen enough; keep Python from complaining about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return GOOD
