"""A router of the user's own: a function in a Python file beside the scenario, or in an installed module.

`policy: mine:choose` names the function `choose` of `mine.py`. It takes a request and a View and returns the
number of a replica, like the choosers of sim.serving.routers; or it takes nothing and returns such a
function, which then remembers what it likes in its closure. A file is read anew for each run, so that
runs do not meet.
Ignores: what else the file does when it is read; it is the user's own code and is not held back.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import operator
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from sim.base.errors import ConfigError, ValueProblem, did_you_mean
from sim.config.paths import as_known
from sim.serving.routers import Chooser, View
from sim.workload.request import Request

WANTED = "write `def {name}(request, view):` that returns the number of a replica"


def own_router(policy: str) -> Callable[[], Chooser]:
    """What makes the chooser of `FILE.py:NAME` or `MODULE:NAME`. Raises ValueProblem."""
    module_name, _, name = policy.rpartition(":")
    module = _file(Path(module_name)) if module_name.endswith(".py") else _module(module_name)
    shown = Path(module_name).name
    thing = getattr(module, name, None)
    if thing is None:
        public = [known for known, value in vars(module).items() if known[:1] != "_" and callable(value)]
        raise ValueProblem(f"{shown} has no '{name}'", did_you_mean(name, public))
    if not callable(thing):
        raise ValueProblem(f"'{name}' of {shown} is no function", WANTED.format(name=name))
    file = getattr(module, "__file__", None) or module_name
    if _takes(thing, 2):
        return lambda: _checked(thing, policy, file)
    if not _takes(thing, 0):
        problem = f"'{name}' of {shown} does not take a request and a view"
        raise ValueProblem(problem, WANTED.format(name=name))
    return lambda: _checked(_made(thing, name, file), policy, file)


def _file(path: Path) -> ModuleType:
    """The module in a file, which may import its neighbours."""
    known = as_known(path)
    if not path.is_file():
        raise ValueProblem(f"there is no file {known}", "write module:name for module.py beside the scenario")
    spec = importlib.util.spec_from_file_location(f"own_router_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        where, what = _trouble(error, str(path))
        raise ValueProblem(f"{path.name}:{where}: {what}", "mend it; it is read as Python") from None
    finally:
        sys.path.remove(str(path.parent))
    return module


def _module(name: str) -> ModuleType:
    """A module of the Python path."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise ValueProblem(f"{name} cannot be imported: {missing}", "install what it needs") from None
        hint = f"write {name}.py beside the scenario, or put the module on the Python path"
        raise ValueProblem(f"there is no module {name}", hint) from None
    except Exception as error:
        raise ValueProblem(
            f"{name} cannot be imported: {type(error).__name__}: {error}", "mend the module"
        ) from None


def _takes(thing: Callable[..., Any], arguments: int) -> bool:
    """Whether something can be called with so many arguments by position."""
    try:
        inspect.signature(thing).bind(*range(arguments))
    except (TypeError, ValueError):
        return False
    return True


def _made(factory: Callable[[], Any], name: str, file: str) -> Callable[..., Any]:
    """What a function without arguments returns, which has to be a chooser."""
    try:
        chooser = factory()
    except Exception as error:
        raise _fault(error, file) from None
    if not callable(chooser) or not _takes(chooser, 2):
        problem = f"'{name}' returns no function of a request and a view"
        raise ConfigError(Path(file).name, None, None, problem=problem, hint=WANTED.format(name="choose"))
    return chooser  # type: ignore[no-any-return]


def _checked(chooser: Callable[[Request, View], Any], policy: str, file: str) -> Chooser:
    """A chooser whose answers and failures are told as the user's own."""

    def choose(request: Request, view: View) -> int:
        try:
            answer = operator.index(chooser(request, view))
        except Exception as error:
            raise _fault(error, file) from None
        if not 0 <= answer < view.replicas:
            problem = (
                f"answered {answer} for request {request.id}; there are replicas 0 to {view.replicas - 1}"
            )
            name = policy.rpartition(":")[2]
            raise ConfigError(
                Path(file).name, None, None, key=name, problem=problem, hint="return one of these"
            )
        return answer

    return choose


def _no_replica(answer: int, request: int, replicas: int, policy: str) -> ConfigError:
    """An answer that is not the number of a replica."""
    file, _, name = policy.rpartition(":")
    problem = f"answered {answer} for request {request}; there are replicas 0 to {replicas - 1}"
    return ConfigError(Path(file).name, None, None, key=name, problem=problem, hint="return one of these")


def _fault(error: Exception, file: str) -> ConfigError:
    """A failure of the user's code, at its line."""
    where, what = _trouble(error, file)
    return ConfigError(Path(file).name, where, None, problem=what, hint="mend the router")


def _trouble(error: Exception, file: str) -> tuple[int | None, str]:
    """The last line of a file that a failure went through, and what it was."""
    what = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    if isinstance(error, SyntaxError):
        return error.lineno, what
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return (lines[-1] if lines else None), what
