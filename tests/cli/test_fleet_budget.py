"""A fleet over its budget: the budget that the answer names is one at which there is a plan, in whole runs and sure."""

from __future__ import annotations

import json

import pytest

from tests.conftest import ROOT, CliResult, Run


@pytest.mark.parametrize("example", ["hpo-fleet", "embed-images-fleet"])
def test_the_budget_named_is_enough(example: str, run_cli: Run) -> None:
    def plan(budget: str) -> CliResult:
        words = ("--set", f"constraints.budget_usd={budget}", "-o", "json", "--as-of", "2026-11-22")
        return run_cli("optimize", str(ROOT / "examples" / f"{example}.yaml"), *words)

    short = plan("5")
    assert short.code == 3
    (relaxation,) = json.loads(short.stdout)["relaxations"]
    assert relaxation["constraint"] == "budget"
    assert "if runs could be split" not in relaxation["note"]
    assert plan(relaxation["needed"].removeprefix("$").replace(",", "")).code == 0
