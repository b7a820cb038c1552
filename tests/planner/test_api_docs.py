"""The code of docs/api.md runs as written, block after block."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.asked.options import Options
from planner.inputs.load import LoadedWorkload
from planner.pipelines.pools_model import Pools
from tests.architecture.modules import ROOT
from tests.planned_examples import DAY, pools_of


@pytest.fixture(scope="module")
def pools() -> Pools:
    """What the page asks for longest, as other files ask it too; before a test, for it is of the whole catalog."""
    return pools_of("grpo-8b")


@pytest.mark.catalog("small")
def test_the_page_runs(
    pools: Pools, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    def asked(loaded: LoadedWorkload, options: Options, **_: Any) -> Pools:
        assert (loaded.workload.name, options.as_of) == (pools.workload, DAY.date())
        return pools

    monkeypatch.setattr("planner.pipelines.pools.plan_pools", asked)
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/api.md", "exec"), names)  # the page's own code
    shown = capsys.readouterr().out
    assert "Cheapest feasible plan" in shown and "use planner.portfolio()" in shown
