"""The code of docs/api.md runs as written, block after block."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.architecture.modules import ROOT


@pytest.mark.catalog("small")
def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/api.md", "exec"), names)  # the page's own code
    shown = capsys.readouterr().out
    assert "Cheapest feasible plan" in shown and "use planner.portfolio()" in shown
