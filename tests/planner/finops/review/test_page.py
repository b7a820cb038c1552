"""The page about the review names what there is, and its example runs."""

from __future__ import annotations

import re

import pytest

from planner.finops.review.sections.registry import SECTIONS
from planner.render.formats import REVIEW_FORMATS
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "finops" / "review.md").read_text(encoding="utf-8")


NAMED = re.findall(r"^\| `(\w+)`", PAGE, flags=re.M)


def test_the_page_has_every_section_in_its_order() -> None:
    assert NAMED[: len(SECTIONS)] == [name for name, _ in SECTIONS]


def test_the_page_has_every_format() -> None:
    assert NAMED[len(SECTIONS) :] == list(REVIEW_FORMATS)


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    names: dict[str, str] = {}
    exec(code, names)  # the repository's own page
    assert names["page"].startswith("<!DOCTYPE html>")
    assert capsys.readouterr().out.startswith("October 2026 cost")
