"""Whatever a user writes, there is a form or there are mistakes with a remedy; never anything else."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.base.errors import ConfigError, ConfigErrors
from sim.config.load import load_scenario
from sim.config.scenario import Scenario

SNIPPETS = [
    "\t",
    "\n",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "'",
    '"',
    "#",
    "&a ",
    "*a",
    "!!x ",
    "<<: ",
    "|",
    ">",
    "%",
    "@",
    "\0",
]
SNIPPETS += [
    "null",
    "true",
    "010",
    "1e6",
    "12:30",
    "-1",
    "0",
    "2.5",
    "\x07",
    "\u2028",
    "é説😀",
    "extends: chat.yaml\n",
]
SNIPPETS += [
    "pools.*.tp: 0\n",
    "variants: 1\n",
    "400 Gbps",
    "ttft p9 < 1",
    "..",
    "/",
    "~",
    "? ",
    "---\n",
    "\ufeff",
    "\r",
]

edits = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 12), st.sampled_from(SNIPPETS) | st.text(max_size=5)),
    min_size=1,
    max_size=6,
)
keys = st.sampled_from(
    ["run.seed", "pools.decode.tp", "pools.*", "slo", "slo.0", "workload", "a.b", "", ".", "model.*.x"]
)
sets = st.lists(
    st.builds("{}={}".format, keys | st.text(max_size=6), st.sampled_from(SNIPPETS) | st.text(max_size=8)),
    max_size=3,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=300,
    deadline=None,
)
@given(edits, sets, st.none() | st.sampled_from(["large", "slow", "x"]))
def test_any_text_gives_a_form_or_mistakes(
    study: Path, text: str, edits: list[tuple[int, int, str]], sets: list[str], variant: str | None
) -> None:
    for place, cut, snippet in edits:
        at = place % (len(text) + 1)
        text = text[:at] + snippet + text[at + cut :]
    (study / "spoilt.yaml").write_bytes(text.encode("utf-8", errors="surrogatepass"))
    told: list[ConfigError] = []
    made = None
    try:
        made = load_scenario("spoilt.yaml", sets, variant)
    except ConfigErrors as caught:
        told = caught.errors
    assert isinstance(made, Scenario) != bool(told)
    for error in told:
        assert error.problem
        assert error.hint, error.problem
        assert "pydantic" not in str(error)
        assert "Input should" not in str(error)
