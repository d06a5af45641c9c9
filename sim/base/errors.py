"""The voices in which the simulator speaks of trouble, and "did you mean".

ConfigError is the user's mistake and says where it is and what to do. UnsupportedError is a wish that
is not modelled. SimulationError is a broken law of the simulator, hence our bug. Advice is a doubt
about a valid input or result. The first three carry the exit code of the command.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN_AT_MOST = 10


class SimError(Exception):
    """Anything that the simulator reports to its user without a traceback."""

    exit_code = 2


class ConfigError(SimError):
    """One mistake of the user: where it stands, what is wrong, and the remedy.

    `file` is a path as the user knows it, or the text of an override; `line` and `column` count from 1
    and are None where there is no file. `excerpt` shows the line with a caret under the spot.
    """

    def __init__(  # noqa: PLR0913 - a place has three parts, and what is said about it has four
        self,
        file: str,
        line: int | None,
        column: int | None,
        *,
        key: str = "",
        problem: str,
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        self.file, self.line, self.column = file, line, column
        self.key, self.problem, self.hint, self.excerpt = key, problem, hint, excerpt
        super().__init__(problem)

    def __str__(self) -> str:
        place = [str(part) for part in (self.file, self.line, self.column) if part is not None]
        head = ":".join(place) + ": " + (f"{self.key}: " if self.key else "") + self.problem
        hint = f"  hint: {self.hint}" if self.hint else None
        return "\n".join(line for line in (head, self.excerpt, hint) if line)


class ConfigErrors(SimError):  # noqa: N818 - the plural says it better
    """All mistakes of an input, in the order of the file; printed are at most ten."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        self.errors = list(errors)
        super().__init__(f"{len(self.errors)} mistakes")

    def __str__(self) -> str:
        shown = [str(error) for error in self.errors[:SHOWN_AT_MOST]]
        more = len(self.errors) - len(shown)
        if more:
            shown.append(f"... and {more} more {'mistake' if more == 1 else 'mistakes'}")
        return "\n\n".join(shown)


class UnsupportedError(SimError):
    """A wish that is understood but not modelled, and what comes nearest to it."""

    def __init__(self, problem: str, nearest: str | None = None) -> None:
        self.problem, self.nearest = problem, nearest
        super().__init__(problem + (f"\n  nearest: {nearest}" if nearest else ""))


class SimulationError(SimError):
    """A law of the simulator was broken; not the user's fault."""

    exit_code = 3

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}\n  this is a bug in the simulator: please report it with the run folder")


class UnknownNameError(SimError, KeyError):
    """A name that a registry or a catalogue does not hold, with the nearest one that it does."""

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        self.problem = f"unknown {kind} '{name}'"
        self.hint = did_you_mean(name, choices)
        super().__init__(f"{self.problem}\n  hint: {self.hint}")

    def __str__(self) -> str:
        return str(self.args[0])


class ValueProblem(ValueError):  # noqa: N818 - as ConfigErrors: what it holds is the point
    """A value that cannot be used: the problem and the remedy.

    `keys` are dotted paths below the value, any of which may be at fault; the one written last is shown.
    """

    def __init__(self, problem: str, hint: str | None = None, keys: Sequence[str] = ()) -> None:
        self.problem, self.hint, self.keys = problem, hint, tuple(keys)
        super().__init__(problem + (f"; {hint}" if hint else ""))


@dataclass(frozen=True, slots=True)
class Advice:
    """A doubt, not a mistake: what looks wrong, and what would settle it."""

    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.text}\n  advice: {self.remedy}"


def suggest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that `word` most likely stands for, or None."""
    known = list(choices)
    near = difflib.get_close_matches(plain(word), [plain(choice) for choice in known], n=1, cutoff=0.6)
    alike = [choice for choice in known if plain(choice) in near]
    return max(alike, key=lambda c: difflib.SequenceMatcher(None, word, c).ratio(), default=None)


def plain(word: str) -> str:
    """A word without what people get wrong first: case, and the kind of dash."""
    return word.casefold().replace("-", "_").replace(" ", "_")


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The remedy for a wrong name: the nearest choice, or all of them where none is near."""
    known = list(choices)
    near = suggest(word, known)
    if near is not None:
        return f"did you mean '{near}'?"
    if not known:
        return "there is nothing to choose from"
    return f"choose from {listed(known)}" if len(known) > 1 else f"the only choice is '{known[0]}'"


def listed(words: Sequence[str], joiner: str = "and", most: int = 16) -> str:
    """Words as a person lists them: `a, b and c`; a long list is cut, saying how many are left out."""
    if len(words) > most:
        return f"{', '.join(words[:most])} ... ({len(words) - most} more)"
    return f"{', '.join(words[:-1])} {joiner} {words[-1]}" if len(words) > 1 else "".join(words)


def shown(written: object) -> str:
    """A value as a message names it."""
    if isinstance(written, dict):
        return "a mapping"
    if isinstance(written, list):
        return "a list"
    if isinstance(written, bool) or written is None:
        return "null" if written is None else str(written).lower()
    text = str(written)
    text = text if len(text) <= 60 else f"{text[:60]}..."
    return repr(text) if isinstance(written, str) else text
