"""A small scenario that is right, to be spoilt or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

TEXT = """\
sim: 1
name: chat
topology: topologies/dgx.yaml
model: {name: llama-3.1-70b}
pools:
  - {name: prefill, role: prefill, replicas: 4}
  - name: decode
    role: decode
    replicas: 2
workload:
  generator: mooncake-conversation
  rate: 20 req/s
run: {duration: 60 s, warm_caches: 10 min}
slo: [ttft p90 < 2 s]
variants:
  large: {pools.decode.replicas: 8, run: {seed: 3}}
  slow: {router.policy: round_robin}
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the scenario, which is the current folder."""
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "chat.yaml").write_text(TEXT)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def text() -> str:
    """The text of the scenario."""
    return TEXT
