"""`benchmarks.winners` names each rule that a winner breaks, and none that it keeps."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.winners import breaches, main
from tests.conftest import ROOT

WORKLOAD = ROOT / "examples" / "resnet50-imagenet.yaml"


def plan(p_meet: float = 0.99, **changes: Any) -> SimpleNamespace:
    """A plan of one line."""
    line = {
        "offer_id": "x", "purchase_option": "spot", "nodes": 2, "accelerators_per_node": 8, "price_kind": "observed",
        "price_p10_per_hour": 8.0, "price_per_hour": 10.0, "price_p90_per_hour": 13.0, "provider": "aws",
        "instance_type": "p5.48xlarge", "flags": (), "accelerator": "h100-80gb-sxm",
    } | changes  # fmt: skip
    launch = SimpleNamespace(p_meet_deadline=p_meet)
    return SimpleNamespace(lines=[SimpleNamespace(**line)], launch=launch, risk=None)


def test_a_plain_winner_breaks_no_rule() -> None:
    assert list(breaches(plan(), WORKLOAD)) == []
    assert list(breaches(plan(1.0, purchase_option="owned", price_kind="firm"), WORKLOAD)) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"price_kind": "derived"}, "price is derived"),
        ({"flags": ("retired",)}, "retired"),
        ({"accelerator": "trainium2"}, "other software"),
        ({"nodes": 64}, "asking brings"),
        ({"p_meet": 1.0}, "for certain"),
        ({"price_kind": "no_market"}, "price is no_market"),
        ({"price_p90_per_hour": None}, "without its interval"),
        ({"price_p10_per_hour": 10.5}, "without its interval"),
        ({"price_kind": "listed", "price_p10_per_hour": 13.0}, "without its interval"),
        ({"price_kind": "guessed"}, "unknown kind"),
        ({"instance_type": "p3.16xlarge"}, "retired"),
    ],
)
def test_each_rule_is_named(changes: dict[str, Any], words: str) -> None:
    found = list(breaches(plan(**changes), WORKLOAD))
    assert len(found) == 1 and words in found[0]


def test_rows_are_kept_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "rows.csv"
    assert main([str(WORKLOAD), "--out", str(kept)]) == 0
    (row,) = csv.DictReader(kept.read_text(encoding="utf-8").splitlines())
    assert row["workload"] == WORKLOAD.stem and " spot" in row["winner"] and float(row["p_meet"]) < 1
    assert "1 planned, 0 break" in capsys.readouterr().out

    kept.write_text(kept.read_text(encoding="utf-8").replace(" spot", " block"), encoding="utf-8")
    main([str(WORKLOAD), "--was", str(kept), "--each"])
    said = capsys.readouterr().out
    assert f"{WORKLOAD.stem}: " in said and " -> " in said and f"| {WORKLOAD.stem} | " in said


def test_a_file_without_a_plan_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(WORKLOAD), "--set", "constraints.deadline=1h", "--set", "constraints.max_nodes=1"]) == 1
    assert "no plan" in capsys.readouterr().out
