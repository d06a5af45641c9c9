"""Which signs and colours an output can show, and plain ones for those that cannot."""

from __future__ import annotations

import os
from typing import TextIO

_PLAIN = str.maketrans(
    {"✓": "+", "✗": "x", "·": "|", "–": "-", "→": ">", "…": ".", "█": "#", "░": ".", "×": "x", "µ": "u"}
    | dict(zip("▁▂▃▄▅▆▇", "_.-=+*%", strict=True))
)


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user has not declined colour (NO_COLOR, TERM=dumb)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_encode(stream: TextIO) -> bool:
    """Whether the signs of the screen exist in the encoding of a stream."""
    try:
        "✓✗·–█▁→".encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def plainly(text: str) -> str:
    """Text in ASCII: signs replaced by their nearest, anything else by a question mark."""
    return text.translate(_PLAIN).encode("ascii", "replace").decode()
