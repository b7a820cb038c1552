"""`COLUMNS` decides how wide an answer is, also in a pipe; a hundred columns are the most.

Answers that take long to find are held to it where they are asked for: `test_screens.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.render.terminal import terminal_width
from planner.render.text import display_width
from tests.conftest import ROOT, Run

EXAMPLES = ROOT / "examples"
ASKED = (
    ("optimize", EXAMPLES / "resnet50-imagenet.yaml"),
    ("estimate", EXAMPLES / "resnet50-imagenet.yaml", "--instance-type", "p4d.24xlarge"),
    ("budget", EXAMPLES / "budgets.yaml", "--daily", EXAMPLES / "daily-costs.csv"),
    ("review", "--use-case", "list"),
    ("catalog", "list"),
    ("catalog", "show", "p4d.24xlarge"),
)


@pytest.mark.parametrize("words", ASKED, ids=lambda words: " ".join(Path(word).name for word in words[:2]))
def test_an_answer_is_as_wide_as_columns_says(
    words: tuple[object, ...], run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    found = run_cli(*map(str, words))
    widths = [display_width(line) for line in found.stdout.splitlines()]
    assert 40 < max(widths) <= 64, next(line for line in found.stdout.splitlines() if len(line) > 64)


@pytest.mark.parametrize(
    ("columns", "width"), [("70", 70), ("300", 100), ("", 100), ("0", 100), ("wide", 100), ("-5", 100)]
)
def test_what_columns_may_say(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width(None) == width


def test_a_file_is_as_wide_too(run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "budget.txt"
    words = ("budget", str(EXAMPLES / "budgets.yaml"), "--daily", str(EXAMPLES / "daily-costs.csv"))
    wide = run_cli(*words).stdout
    run_cli(*words, "--out", str(out))
    assert out.read_text(encoding="utf-8") == wide
    monkeypatch.setenv("COLUMNS", "64")
    run_cli(*words, "--out", str(out))
    assert max(map(display_width, out.read_text(encoding="utf-8").splitlines())) <= 64
