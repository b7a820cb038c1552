"""Cells that name files lead to them from the page, and to nothing that a browser would run."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.render import render_answer
from planner.render.links import address
from planner.render.model import Answer, Column, Section, Table


@pytest.mark.parametrize(
    ("named", "folder", "expected"),
    [
        ("plans/west.json", "", "./plans/west.json"),
        ("plans/west.json", "out", "./../plans/west.json"),
        ("plans/west.json", "plans", "./west.json"),
        ("/plans/west.json", "/out/pages", "./../../plans/west.json"),
        ("my west#1?.json", "", "./my%20west%231%3F.json"),
        ("100%.json", "", "./100%25.json"),
        ("javascript:alert(1)", "", "./javascript%3Aalert%281%29"),
        ('a"onclick="b', "", "./a%22onclick%3D%22b"),
        ("https://example.com/plans/a b.json", "out", "https://example.com/plans/a%20b.json"),
        ('https://example.com/"><script>', "", "https://example.com/%22%3E%3Cscript%3E"),
        ("http://example.com/plan.json", "", ""),
        ("javascript://example.com/%0aalert(1)", "", ""),
        ("file:///etc/passwd", "", ""),
        ("https:///plan.json", "", ""),
        ("a\nb", "", ""),
        ("", "", ""),
    ],
)
def test_addresses(named: str, folder: str, expected: str) -> None:
    assert address(named, folder) == expected


def test_a_page_links_columns_that_say_so_and_escapes_them(tmp_path: Path) -> None:
    columns = (
        Column("what", "Action", "text"), Column("file", "Saved plan", "text", place="below", links=True),
        Column("text", "Why", "text", place="below"),
    )  # fmt: skip
    rows = (("Move", "plans/<b>&west.json", "plans/east.json"),)
    section = Section("s", "S", (), (), (Table("t", "T", columns, rows),), ())
    page = str(
        render_answer(Answer("topic", "title", (), (section,), {}, folder=str(tmp_path / "out")), "html")
    )
    assert 'plans/%3Cb%3E%26west.json"><bdi>plans/&lt;b&gt;&amp;west.json</bdi></a>' in page
    assert page.count('<a href="./') == 1
