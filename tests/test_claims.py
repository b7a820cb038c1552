"""The ledger of claims: it is current, complete, and its verdicts are arithmetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.claims.__main__ import main
from benchmarks.claims.figures import Figure, figure_of, sanity
from benchmarks.claims.ledger import OF_RULES, Claim, judged, load_claims, render, verdict
from benchmarks.rows import read_csv
from planner.workloads.size_rules import load_rules
from tests.conftest import ROOT

CLAIM = Claim("x", "", "says", "somebody", 2.0, 4.0, "x", 0.25, "", "", "2026-11")


def test_the_ledger_is_current(tmp_path: Path) -> None:
    assert main(["--out", str(tmp_path / "claims.md")]) == 0
    written = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert (tmp_path / "claims.md").read_text(encoding="utf-8") == written, (
        "run `python -m benchmarks.claims --out docs/claims.md`"
    )


def test_every_rule_and_every_published_fact_is_in_it() -> None:
    page = render()
    assert [rule.rule_id for rule in load_rules() if f"| {rule.rule_id} | " not in page] == []
    facts = (ROOT / "docs" / "sanity.md").read_text(encoding="utf-8").splitlines()
    starts = [line.split(" | ")[0] for line in facts if line.startswith("| ") and " | ours " not in line]
    starts = [start for start in starts if not start.startswith("| ---")]
    named = [
        claim.figure.split(":", 1)[1]
        for claim in load_claims()
        if claim.figure.startswith(("sanity:", "checked:"))
    ]
    assert [start for start in starts if not any(start.startswith(f"| {name}") for name in named)] == []
    known = {rule.rule_id for rule in load_rules()}
    assert {rule for claim in load_claims() for rule in claim.rules.split()} <= known
    shared = ROOT.parent / "shared" / "sizing" / "rules.csv"
    if not shared.is_file():
        pytest.skip("no ../shared/sizing/rules.csv beside this checkout")
    assert {row["rule_id"] for row in read_csv(shared)} == known


def test_a_claim_without_a_number_says_why() -> None:
    rows = judged()
    assert [claim.claim_id for claim, _, word in rows if word == "undecided" and not claim.why] == []
    assert len({claim.claim_id for claim, _, _ in rows}) == len(rows)
    assert set(OF_RULES.values()) == {"holds", "holds within limits", "refuted", "undecided"}


@pytest.mark.parametrize(
    ("value", "word"),
    [(2.0, "holds"), (4.0, "holds"), (1.8, "holds within 10 %"), (5.0, "holds within 25 %"), (5.1, "refuted"),
     (1.4, "refuted"), (None, "undecided")],
)  # fmt: skip
def test_verdicts_are_arithmetic(value: float | None, word: str) -> None:
    assert verdict(CLAIM, value) == word


def test_an_open_end_and_a_negative_range() -> None:
    assert verdict(replace(CLAIM, high=None), 1e9) == "holds"
    assert verdict(replace(CLAIM, low=None, high=None), 1.0) == "undecided"
    assert verdict(replace(CLAIM, low=-0.2, high=-0.15, tolerance_ratio=0.1), 0.17) == "refuted"


def test_the_figure_is_read_with_its_interval() -> None:
    page = "| fact | 34 days | 1,038.3 days | 33.8 to 43.5 | yes | x |"
    assert sanity(page, "fact") == Figure(
        1038.3, "1,038.3 days (80 %: 33.8 to 43.5)", "python -m benchmarks.sanity"
    )


def test_gpt3_needs_what_its_states_need() -> None:
    bytes_each, least = figure_of("training_bytes").value, figure_of("gpt3_memory").value
    assert bytes_each is not None and least is not None and least >= 175 * bytes_each
