"""`benchmarks.winners` names each rule that a winner breaks, and none that it keeps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.winners import breaches
from tests.conftest import ROOT

WORKLOAD = ROOT / "examples" / "resnet50-imagenet.yaml"


def plan(p_meet: float = 0.99, **changes: Any) -> SimpleNamespace:
    """A plan of one line."""
    line = {
        "offer_id": "x", "purchase_option": "spot", "nodes": 2, "accelerators_per_node": 8, "price_kind": "observed",
        "flags": (), "accelerator": "h100-80gb-sxm",
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
    ],
)
def test_each_rule_is_named(changes: dict[str, Any], words: str) -> None:
    found = list(breaches(plan(**changes), WORKLOAD))
    assert len(found) == 1 and words in found[0]
