"""A review as a message for a chat (brief, slack, teams): what it says, how long it is, and that words stay words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from planner.errors import InputError
from planner.finops.review.model import Column, Figure, Review, Section, Table
from planner.finops.review.report import render_review, review_answer
from planner.render import render_answer
from planner.render.chat import MOST_LINES
from planner.render.formats import CHAT_FORMATS, FORMATS
from tests.planner.render.sample import HOSTILE, sample_review

KEYS = ("what", "why", "saves", "once", "basis", "owner", "command")
ROWS = (
    (
        "Run p5.48xlarge on spot where work may pause",
        "half the price",
        30_279.4,
        None,
        "at most",
        "research",
        "",
    ),
    ("Look into Cloud Storage of 2026-10-19", "dearer than its days", None, 4_570.3, "once", "", ""),
    ("Commit more: Compute Engine", "steady", None, None, "estimate", "data", ""),
    ("Delete disk-1", "not used", 12.5, None, "estimate", "web", ""),
)
FIGURES = (
    Figure(
        "overview_budget_money",
        "Budget, October 2026",
        1_300_000.0,
        "money",
        note="25,183 USD (1.9 %) over expected",
    ),
    Figure("forecast_landing_money", "November 2026, expected", 1_312_400.0, "money"),
    Figure("forecast_low_money", "Low", 1_270_000.0, "money", "flagged", "few windows"),
    Figure("forecast_high_money", "High", 1_350_000.0, "money", "flagged", "few windows"),
)


def _review(rows: tuple[tuple[Any, ...], ...] = ROWS) -> Review:
    """The sample with a budget, a forecast and actions as a review has them."""
    table = Table("actions", "Actions", tuple(Column(key, key, "text") for key in KEYS), rows)
    found = (
        Figure("actions_count", "Actions", 7, "count"),
        Figure("actions_saves_money", "Saved", 30_291.9, "money"),
    )
    own = (
        Section("forecast", "Where will cost go?", figures=FIGURES),
        Section("actions", "What should be done?", figures=found, tables=(table,)),
    )
    sample = sample_review()
    kept = (section for section in sample.sections if section.key not in ("forecast", "actions"))
    return replace(sample, sections=(*kept, *own), command="planner review --focus bill --month 2026-10")


def _hostile() -> Review:
    """Every word is hostile, and as long as the limits are hard to keep."""
    words = '&<!channel> *"\\\U0001f680' * 400
    rows = tuple((text + words, text, 1e9, None, "at most", text + words, text) for text in HOSTILE)
    made = _review(rows)
    first = Section("quality", words, (words,), status="withheld", reason=words)
    return replace(made, verdict=words, sections=(first, *made.sections[1:]), command=words)


def _text(review: Review, fmt: str) -> str:
    made = render_review(review, fmt)
    assert isinstance(made, str)
    return made


@pytest.mark.parametrize("fmt", CHAT_FORMATS)
def test_a_message_of_a_review(fmt: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"finops_render/message.{FORMATS[fmt].extension}", _text(_review(), fmt))


def test_a_brief_is_short_and_names_amount_bound_and_owner() -> None:
    lines = _text(_review(), "brief").splitlines()
    assert len(lines) <= MOST_LINES
    assert (
        "1. Run p5.48xlarge on spot where work may pause: at most 30,279 USD a month, owner research" in lines
    )
    assert "2. Look into Cloud Storage of 2026-10-19: 4,570 USD once, no owner known" in lines
    assert "3. Commit more: Compute Engine: the bill does not say what it saves, owner data" in lines
    assert "Budget: 1,300,000 USD (October 2026); 25,183 USD (1.9 %) over expected" in lines
    assert (
        "Actions: 7 to consider, together at most 30,292 USD a month" in lines
    )  # those left out of the table too
    assert lines[-1].endswith("--month 2026-10 -o html --out review-2026-10.html")


def test_a_brief_names_the_contract_that_is_not_drawn(gap: float = 1832936.0) -> None:
    """A commitment of which a fifth would be paid for nothing was in a section of the page alone."""
    said = "EDP 2026: 59.6 % of 9,000,000 USD is drawn, 74.8 % of its time is over."
    for value, lines in ((gap, [f"Contracts: {said}"]), (0.0, [])):
        figure = Figure("contracts_gap_money", "Not drawn at this pace", value, "money")
        own = Section("contracts", "Contracts", (said,), (figure,))
        shown = _text(replace(_review(), sections=(own,)), "brief").splitlines()
        assert [line for line in shown if line.startswith("Contracts")] == lines


def test_a_brief_says_what_is_withheld_and_leaves_out_what_is_not_known() -> None:
    held = Section(
        "actions", "What should be done?", status="withheld", reason="12 % of the cost cannot be read"
    )
    text = _text(replace(_review(), sections=(held,), command=""), "brief")
    assert "Actions: withheld: 12 % of the cost cannot be read" in text
    assert "Budget" not in text and "Forecast" not in text
    assert "Full page: planner review of the same bill with -o html" in text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif isinstance(value, str):
        yield value


def test_slack_takes_the_message_and_reads_no_markup_in_it() -> None:
    message = json.loads(_text(_hostile(), "slack"))
    assert len(message["blocks"]) <= 50
    assert max(map(len, _strings(message))) <= 3000
    assert {block["type"] for block in message["blocks"]} == {"header", "rich_text"}
    assert len(message["blocks"][0]["text"]["text"]) <= 150
    assert "<" not in message["text"] and "&lt;!channel&gt;" in message["text"]


def test_teams_takes_the_message_and_reads_no_markup_in_it() -> None:
    text = _text(_hostile(), "teams")
    assert len(text.encode("utf-16-le")) <= 28_000
    card = json.loads(text)["attachments"][0]["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}  # no Markdown in its runs


@pytest.mark.parametrize("fmt", CHAT_FORMATS)
def test_hostile_words_keep_to_the_lines(fmt: str) -> None:
    text = _text(_hostile(), fmt)
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert "\x1b" not in text and "\u202e" not in text
    text.encode()
    assert fmt != "brief" or len(text.splitlines()) <= MOST_LINES


def test_other_answers_have_no_message() -> None:
    with pytest.raises(InputError, match="only the review of a bill"):
        render_answer(replace(review_answer(_review()), brief=()), "slack")
