"""Whatever a command claims to have proven names, in the same sentence, the set that it is true of."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import test_commit, test_pipeline, test_pools, test_portfolio, test_schedule
from tests.conftest import ROOT, Run

DAY = ("--as-of", "2026-11-20")
BERT = str(ROOT / "examples" / "bert-large.yaml")

CLAIM = re.compile(
    r"\b(optimal|optimum|infeasible|proven|smallest|lighter set|best of|least (cost|time)"
    r"|no (plan|fleet|schedule|choice|commitment)|none of|(costs?|takes?|has|have) less than|at least`)\b"
    r"|\bexact at\b",
    re.IGNORECASE,
)
SET = re.compile(
    r"candidates?|of (those|commitments|the commitments)|commitment on sale|changes? tried|pools"
    r"|best of (on-demand|spot|capacity|a block)",
    re.IGNORECASE,
)
pytestmark = pytest.mark.catalog("small")


def sentences(text: str) -> list[str]:
    """Claims in an answer whose lines are not wrapped, as Markdown."""
    return [line.strip() for line in text.splitlines() if CLAIM.search(line)]


def _workload(folder: Path, old: str, new: str) -> str:
    text = (ROOT / "examples" / "bert-large.yaml").read_text(encoding="utf-8")
    assert old in text
    path = folder / "workload.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return str(path)


def _question(folder: Path, text: str) -> str:
    path = folder / "question.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def _tight(folder: Path) -> str:
    return _question(folder, f"{test_pipeline.HEAD}deadline: 3h\n{test_pipeline.TASKS}")


ASKED: dict[str, Callable[[Path], tuple[object, ...]]] = {
    "optimize": lambda _: ("optimize", BERT, *DAY),
    "optimize, nothing fits": lambda folder: ("optimize", _workload(folder, "deadline: 7d", "deadline: 1h"), *DAY),
    "explain": lambda folder: ("explain", _workload(folder, "deadline: 7d", "deadline: 1h"), *DAY),
    "frontier": lambda _: ("frontier", BERT, *DAY),
    "portfolio": lambda folder: ("portfolio", _question(folder, test_portfolio.SIZED), *DAY),
    "portfolio --frontier": lambda folder: (
        "portfolio", _question(folder, test_portfolio.SIZED), "--frontier", "3", *DAY,
    ),
    "pipeline": lambda folder: ("pipeline", _question(folder, test_pipeline.HEAD + test_pipeline.TASKS), *DAY),
    "pipeline, nothing fits": lambda folder: ("pipeline", _tight(folder), *DAY),
    "schedule": lambda folder: ("schedule", test_schedule.write(folder), *DAY),
    "serving": lambda _: ("serving", ROOT / "examples" / "serving.yaml", *DAY),
    "pools": lambda folder: (
        "pools", _question(folder, test_pools.WORKLOAD.replace("AHEAD", "1") + test_pools.SHORT), *DAY,
    ),
    "commit": lambda folder: ("commit", test_commit.write(folder)),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_every_claim_names_its_set(tmp_path: Path, run_cli: Run, name: str) -> None:
    done = run_cli(*ASKED[name](tmp_path), "-o", "md")
    assert done.code in (0, 3), done.stderr
    claims = sentences(done.stdout)
    assert claims, done.stdout
    assert [claim for claim in claims if not SET.search(claim)] == []


def test_a_certificate_names_what_its_bound_is_of(tmp_path: Path, run_cli: Run) -> None:
    for command, question in (("optimize", BERT), ("portfolio", _question(tmp_path, test_portfolio.SIZED))):
        path = tmp_path / f"{command}.json"
        assert run_cli(command, question, "--certificate", path, *DAY).code == 0
        told = " ".join(run_cli("verify", path).stdout.split())  # lines wrap by the length of the path
        claims = [part for part in told.split("; ") if CLAIM.search(part)]
        assert any(re.search(r"no plan of the [\d,]+ candidates that it lists", claim) for claim in claims)
        assert all(SET.search(claim) for claim in claims if "gap" not in claim)
