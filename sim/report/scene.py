"""Where everything stands in the drawing of a topology: boxes, lines and words, in inches.

The first unit of the first pod is laid out in full, from its nodes up to the cores; equal units and pods
beside it are folded into cards. Works on plain figures and on a graph whose vertices have `tier`, `unit` and
`pod`; knows nothing of how it is painted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sim.report.shapes import Box, Scene, Span, Strand, Words
from sim.report.topology import ratio
from sim.results.words import counted, whole

WIDTH = 16.0
GUTTER = 2.05
MARGIN = 0.35
TOP = 1.1
FOOT = 0.85
STOREY = 1.95
NODE_HEIGHT = 1.0
MOST_SWITCHES = 64
MOST_NODES = 36
MOST_WIDTH = 1.5
NODE_PART = 0.84
DIRECT_STEP = 4.0
BELOW = 0.7
"""Room under two nodes back to back for what is said of their cables."""
CARD = 1.45
GAP = 0.22
MOST_LINES = 300
"""More lines than this between spines and cores are a wedge."""
TIERS: tuple[str, ...] = ("node", "leaf", "spine", "core")


def scene(figures: Mapping[str, Any], graph: Any | None) -> Scene:
    """Lay out a topology from figures as `sim topo show --json` writes them, and its graph if it has one."""
    return _Layout(figures, graph).scene


class _Layout:
    """A scene while it is laid out."""

    def __init__(self, figures: Mapping[str, Any], graph: Any | None) -> None:
        self.figures, self.graph = figures, graph
        fabric = figures["fabric"]
        self.tiers = [tier["tier"] for tier in fabric["tiers"]] if fabric else []
        storeys = len(self.tiers)
        foot = FOOT + (BELOW if self._is_direct() else 0.3)
        self.scene = Scene(TOP + foot + NODE_HEIGHT + 0.2 + STOREY * storeys)
        self.level = {"node": foot + NODE_HEIGHT / 2}
        for i, tier in enumerate(self.tiers):
            self.level[tier] = foot + NODE_HEIGHT + STOREY * (i + 1) - 0.45
        self.stage = Span(GUTTER, WIDTH - MARGIN)
        self.place: dict[Any, float] = {}
        self.number = self._numbers()
        self._gutter()
        parts = {
            kind: [part for part in figures["parts"] if part["kind"] == kind] for kind in ("pod", "unit")
        }
        pods, units = parts["pod"], parts["unit"]
        if pods:
            self._cores()
            inside = self._cards("pod", pods, self.stage)
            self._panel("pod 0", inside, "spine")
            inner = Span(inside.left + 0.12, inside.right - 0.12)
            units = [part for part in pods[0]["parts"] if part["kind"] == "unit"]
            self._spines(inner)
            self._unit(units, inner)
        elif units:
            self._unit(units, self.stage)
        else:
            self._nodes(figures["parts"], self.stage)
        self._strands()

    def _numbers(self) -> dict[Any, int]:
        """The number of each vertex in its tier."""
        return {
            vertex: number
            for tier in range(len(TIERS))
            for number, (vertex, _) in enumerate(self._of_tier(tier))
        }

    def _gutter(self) -> None:
        """What each layer is, at the left."""
        fabric = self.figures["fabric"]
        facts = {tier["tier"]: tier for tier in fabric["tiers"]} if fabric else {}
        for tier in self.tiers:
            count = facts[tier]["switches"]
            name = tier if count == 1 else {"leaf": "leaves"}.get(tier, f"{tier}s")
            self._say(f"{whole(count)} {name}", 0.35, self.level[tier] + 0.1, "layer", "left")
            self._say(f"{facts[tier]['radix']} ports each", 0.35, self.level[tier] - 0.14, "note", "left")
        self._say(counted(self.figures["nodes"], "node"), 0.35, self.level["node"] + 0.22, "layer", "left")
        notes = [counted(self.figures["gpus"], "GPU")]
        notes += [
            f"{counted(domain['count'], 'NVLink domain')} of {domain['gpus']}"
            for domain in self.figures["domains"]
            if domain["has_nvlink"]
        ]
        for i, note in enumerate([*notes, ""]):
            role = "note" if note else "cables nvlink"
            self._say(note, 0.35, self.level["node"] - (0.02 if note else 0.08) - 0.23 * i, role, "left")
        for part in fabric["cabling"] if fabric else ():
            ends = [self.level[part[end]] for end in ("lower", "upper")]
            y = sum(ends) / 2 + (NODE_HEIGHT / 4 if part["lower"] == "node" else 0)
            y = y if ends[0] != ends[1] else y - 1.35
            text, over = (
                f"{whole(part['count'])} cables",
                facts.get(part["lower"], {}).get("oversubscription"),
            )
            if over is not None and over > 1:
                text += f"\noversubscribed {ratio(over)}"
            self._say(text, 0.35, y, f"cables {part['lower']}", "left")

    def _cores(self) -> None:
        if "core" in self.level:
            self._switches("core", self._of_tier(3), self.stage)

    def _spines(self, span: Span) -> None:
        """The spines above the first unit: those of its pod, or those of each of its rails."""
        leaves = [facts for _, facts in self._of_tier(1)]
        pods = {leaf["pod"] for leaf in leaves if leaf["unit"] == leaves[0]["unit"]}
        self._switches("spine", [one for one in self._of_tier(2) if one[1]["pod"] in pods], span)

    def _of_tier(self, tier: int) -> list[tuple[Any, Mapping[str, Any]]]:
        return [one for one in self.graph.nodes(data=True) if one[1]["tier"] == tier] if self.graph else []

    def _switches(self, kind: str, switches: Sequence[tuple[Any, Any]], span: Span) -> None:
        """A row of switches; of very many, those that have room, and an ellipsis."""
        shown = list(switches[:MOST_SWITCHES])
        size = 0.15 if kind != "leaf" else 0.2
        left_out = len(switches) - len(shown)
        inner = Span(
            span.left + (0.55 if kind == "spine" else 0.25), span.right - (0.85 if left_out else 0.25)
        )
        for x, (vertex, _) in zip(inner.spread(len(shown), 0.62), shown, strict=True):
            self.place[vertex] = x
            self.scene.boxes.append(Box(kind, x - size / 2, self.level[kind] - size / 2, size, size))
        if left_out:
            self._say(f"… {whole(left_out)} more", span.right - 0.35, self.level[kind], "note")

    def _cards(self, kind: str, parts: Sequence[Mapping[str, Any]], span: Span) -> Span:
        """Cards for all but the first of some equal parts; returns what room is left for that one."""
        folded = [*parts]
        if folded[0]["count"] > 1:
            folded[0] = {**folded[0], "count": folded[0]["count"] - 1, "first": folded[0]["first"] + 1}
        else:
            folded = folded[1:]
        right = span.right
        for part in reversed(folded):
            self._card(kind, part, Span(right - CARD, right))
            right -= CARD + GAP + 0.1
        return Span(span.left, right)

    def _card(self, kind: str, part: Mapping[str, Any], span: Span) -> None:
        top = "spine" if kind == "pod" else "leaf"
        low, high = self.level["node"] - NODE_HEIGHT / 2 - 0.27, self.level[top] + 0.3
        self.scene.boxes.append(Box("card", span.left, low, span.width, high - low, min(part["count"], 3)))
        count, first = part["count"], part["first"]
        title = f"{kind} {first}" if count == 1 else f"{count} more {kind}s"
        y = self.level[top] - 0.42
        self._say(title, span.middle, y, "card title")
        lines = [*(["each with"] if count > 1 else []), *_contents(part)]
        for i, line in enumerate(lines):
            self._say(line, span.middle, y - 0.24 - 0.2 * i, "note")
        self._shadows(span, ("spine", "leaf") if kind == "pod" else ("leaf",))
        above = {"pod": "core", "unit": "spine"}[kind]
        if above in self.level:
            target = [x for vertex, x in self.place.items() if vertex[0] == above]
            row = Span(min(target), max(target)) if target else self.stage
            self.scene.strands.append(
                Strand(
                    f"{top} {above}",
                    (span.middle, row.middle),
                    (self.level[top] + 0.08, self.level[above] - 0.09),
                    (span.width * 0.6, row.width),
                )
            )

    def _shadows(self, span: Span, tiers: Sequence[str]) -> None:
        """A few pale switches and nodes in a card, at the height of those that are drawn in full."""
        inner = Span(span.left + 0.15, span.right - 0.15)
        for tier in tiers:
            for x in inner.spread(6, 0.2):
                self.scene.boxes.append(Box(f"faint {tier}", x - 0.055, self.level[tier] - 0.055, 0.11, 0.11))
        low = self.level["node"] - NODE_HEIGHT / 2
        for x in inner.spread(7, 0.17):
            self.scene.boxes.append(Box("faint node", x - 0.06, low, 0.12, NODE_HEIGHT * 0.4))

    def _unit(self, units: Sequence[Mapping[str, Any]], span: Span) -> None:
        """The first unit in full, the others beside it."""
        inside = self._cards("unit", units, span) if units else span
        if len(units) > 1 or units[0]["count"] > 1:
            self._panel("unit 0", inside, "leaf")
        leaves = [one for one in self._of_tier(1) if one[1]["unit"] == units[0]["first"]]
        inner = Span(inside.left + 0.1, inside.right - 0.1)
        self._switches("leaf", leaves, inner)
        self._nodes([part for part in units[0]["parts"] if part["kind"] in {"node", "domain"}], inner)

    def _panel(self, title: str, span: Span, top: str) -> None:
        depth = 0.36 if top == "spine" else 0.27
        low, high = self.level["node"] - NODE_HEIGHT / 2 - depth, self.level[top] + 0.3
        self.scene.boxes.insert(
            0 if top == "spine" else 1, Box("panel", span.left, low, span.width, high - low)
        )
        self._say(title, span.left + 0.12, high - 0.15, "panel title", "left")

    def _nodes(self, parts: Sequence[Mapping[str, Any]], span: Span) -> None:
        """The nodes of a unit with their GPUs, in their NVLink domains."""
        nodes = list(_single(parts))
        shown = nodes[:MOST_NODES]
        left_out = len(nodes) - len(shown)
        inner = Span(span.left + 0.08, span.right - (0.95 if left_out else 0.08))
        places = inner.spread(len(shown), DIRECT_STEP if self._is_direct() else MOST_WIDTH)
        step = places[1] - places[0] if len(places) > 1 else MOST_WIDTH
        width = min(step, MOST_WIDTH) * NODE_PART
        y = self.level["node"]
        domains: dict[int, list[float]] = {}
        for x, (number, domain, gpus, nics) in zip(places, shown, strict=True):
            self.place["node", number] = x
            self.scene.boxes.append(Box("node", x - width / 2, y - NODE_HEIGHT / 2, width, NODE_HEIGHT))
            domains.setdefault(domain, []).append(x)
            self._gpus(x, y, width, gpus)
            self._nics(x, y, width, nics)
            ends, joint = (x - width * 0.44, x + width * 0.44), (("node", number), ("nvlink", 0))
            self.scene.strands.append(Strand("nvlink", ends, (y - 0.435, y - 0.435), joint=joint))
        for domain, xs in domains.items():
            left, right = xs[0] - width * 0.46, xs[-1] + width * 0.46
            self.scene.boxes.append(Box("domain", left, y - 0.45, right - left, 0.72))
            if len(xs) > 1:
                gpus = sum(one[2] for one in nodes if one[1] == domain)
                self._say(f"one NVLink domain of {gpus} GPUs", (left + right) / 2, y - 0.64, "domain")
        if left_out:
            self._say(f"… {left_out} more", span.right - 0.42, y, "note")

    def _is_direct(self) -> bool:
        return self.graph is not None and not self.tiers

    def _gpus(self, x: float, y: float, width: float, gpus: int) -> None:
        """The GPUs of a node in columns of four."""
        rows = min(gpus, 4)
        columns = -(-gpus // rows)
        step = min(0.17, width * 0.86 / columns)
        size = step * 0.72
        for i in range(gpus):
            column, row = divmod(i, rows)
            left = x + (column - (columns - 1) / 2) * step - size / 2
            self.scene.boxes.append(Box("gpu", left, y + 0.165 - row * 0.17 - size / 2, size, size))

    def _nics(self, x: float, y: float, width: float, nics: int) -> None:
        """The NICs of a node along its upper edge; one bar where they would be too small to see."""
        step = min(0.17, width * 0.9 / max(nics, 1))
        count, size = (nics, step * 0.7) if step >= 0.06 else (min(nics, 1), width * 0.84)
        for i in range(count):
            left = x + (i - (count - 1) / 2) * step - size / 2
            self.scene.boxes.append(Box("nic", left, y + 0.36, size, 0.08))

    def _strands(self) -> None:
        """A line for each edge of the graph whose ends are both drawn; between spines and cores, a wedge."""
        if self.graph is None:
            return
        shown = [edge for edge in self.graph.edges(data=True) if {*edge[:2]} <= self.place.keys()]
        to_cores = sum("core" in {one[0], other[0]} for one, other, _ in shown)
        if to_cores > MOST_LINES:
            self._veil()
        for one, other, edge in shown:
            lower, upper = sorted((one, other), key=self._tier_of)
            kinds = (TIERS[self._tier_of(lower)], TIERS[self._tier_of(upper)])
            xs = (self.place[lower], self.place[upper])
            if kinds == ("node", "node"):
                self._between(edge["cables"], xs, self.number[lower])
                continue
            is_marked = self._is_marked(kinds[0], lower, edge)
            if kinds[0] != "spine" or is_marked or to_cores <= MOST_LINES:
                low = self.level[kinds[0]] + (NODE_HEIGHT / 2 if kinds[0] == "node" else 0.08)
                high = self.level[kinds[1]] - (0.1 if kinds[1] == "leaf" else 0.08)
                joint = ((kinds[0], self.number[lower]), (kinds[1], self.number[upper]))
                strand = Strand(" ".join(kinds), xs, (low, high), is_marked=is_marked, joint=joint)
                self.scene.strands.append(strand)

    def _tier_of(self, vertex: Any) -> int:
        assert self.graph is not None
        tier: int = self.graph.nodes[vertex]["tier"]
        return tier

    def _veil(self) -> None:
        """A wedge for the many cables between the spines and the cores."""
        spines, cores = ([x for vertex, x in self.place.items() if vertex[0] == tier] for tier in TIERS[2:])
        low, high = Span(min(spines), max(spines)), Span(min(cores), max(cores))
        y = (self.level["spine"] + 0.08, self.level["core"] - 0.09)
        widths = (low.width, high.width)
        self.scene.strands.append(Strand("spine core", (low.middle, high.middle), y, widths))

    def _between(self, cables: int, xs: tuple[float, float], node: int) -> None:
        """The cables of two nodes back to back, one under the other; a node says for both what they carry."""
        half = MOST_WIDTH * NODE_PART / 2
        ends = (min(xs) + half, max(xs) - half)
        for i in range(cables):
            y = self.level["node"] + 0.4 - 0.8 * (i + 0.5) / cables
            rail = i * self.figures["fabric"]["rails"] // cables
            joint = (("node", node), ("rail", rail))
            self.scene.strands.append(Strand("node node", ends, (y, y), is_marked=i == 0, joint=joint))

    def _is_marked(self, kind: str, lower: Any, edge: Mapping[str, Any]) -> bool:
        """Whether a line is on the way of the first rail, by its lower end."""
        if kind == "node" and len(edge["rails"]) == 1:
            return bool(edge["rails"] == (0,))
        firsts = [vertex for vertex in self.place if vertex[0] == kind]
        return bool(lower == firsts[0])

    def _say(self, text: str, x: float, y: float, role: str, align: str = "center") -> None:
        self.scene.words.append(Words(text, x, y, role, align))


def _contents(part: Mapping[str, Any]) -> list[str]:
    """What a folded part holds, each kind on a line."""
    lines: dict[str, int] = {}
    for kind, count, gpus in _counts(part["parts"], 1):
        lines[kind] = lines.get(kind, 0) + count
        lines["GPU"] = lines.get("GPU", 0) + gpus * count
    order = [kind for kind in ("unit", "spine", "leaf", "node", "GPU") if lines.get(kind)]
    return [
        f"{lines[kind]} leaves" if kind == "leaf" and lines[kind] > 1 else counted(lines[kind], kind)
        for kind in order
    ]


def _counts(parts: Sequence[Mapping[str, Any]], times: int) -> Iterator[tuple[str, int, int]]:
    for part in parts:
        count = part["count"] * times
        if part["kind"] != "domain":
            yield part["kind"], count, part["gpus"] if part["kind"] == "node" else 0
        yield from _counts(part["parts"], count)


def _single(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, int, int]]:
    """Every node of some parts by itself: its number, the first of its NVLink domain, its GPUs and NICs."""
    for part in parts:
        if part["kind"] == "node":
            for number in range(part["first"], part["first"] + part["count"]):
                yield number, number, part["gpus"], part["nics"]
            continue
        each = list(_single(part["parts"]))
        for shift in range(0, part["count"] * len(each), len(each)):
            for number, _, gpus, nics in each:
                yield number + shift, each[0][0] + shift, gpus, nics
