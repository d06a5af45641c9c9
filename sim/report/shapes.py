"""What a drawing is made of: boxes, strands and words at places on the paper, in inches."""

from __future__ import annotations

from dataclasses import dataclass, field

Joint = tuple[tuple[str, int], tuple[str, int]]
"""What a line joins, lower end first: two parts of the topology, each a kind and its number."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; `kind` says what it stands for, `copies` how many lie behind it."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Strand:
    """A line, or a wedge that stands for many, from below to above; `kind` names the tiers that it joins.

    `joint` says what exactly a line joins; a wedge has none.
    Marked are the lines of the first rail on its way up, or of the first node where a leaf has all rails.
    """

    kind: str
    x: tuple[float, float]
    y: tuple[float, float]
    widths: tuple[float, float] = (0.0, 0.0)
    is_marked: bool = False
    joint: Joint | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """A text at a point; `role` says how it is set."""

    text: str
    x: float
    y: float
    role: str
    align: str = "center"


@dataclass
class Scene:
    """Everything in a drawing."""

    height: float
    boxes: list[Box] = field(default_factory=list)
    strands: list[Strand] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)

    @property
    def marked(self) -> str:
        """What the marked lines are the way of: the first rail, the first node, or nothing."""
        ends = [strand for strand in self.strands if strand.kind.startswith("node") and strand.is_marked]
        is_one_node = len({strand.x[0] for strand in ends}) == 1 and ends[0].kind == "node leaf"
        return "" if not ends else "first node" if is_one_node else "first rail"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the width."""

    left: float
    right: float

    @property
    def width(self) -> float:
        """How wide it is."""
        return self.right - self.left

    @property
    def middle(self) -> float:
        """The point in its middle."""
        return (self.left + self.right) / 2

    def spread(self, count: int, most: float) -> list[float]:
        """The middles of `count` equal places in it, none wider than `most`, around its middle."""
        step = min(self.width / max(count, 1), most)
        first = self.middle - step * (count - 1) / 2
        return [first + i * step for i in range(count)]
