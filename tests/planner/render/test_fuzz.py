"""Any review can be shown: whatever its words and numbers, a page comes out whole and small enough."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from planner.finops.review.model import Chart, Column, Figure, Review, Section, Table
from planner.finops.review.report import render_review
from planner.render.html import MAX_BYTES
from planner.render.units import SIMPLE_UNITS
from tests.draws import draws
from tests.planner.render.markup import read_page
from tests.planner.render.sample import HOSTILE

WORDS = st.one_of(
    st.text(st.characters(codec=None), max_size=30),
    st.sampled_from([*HOSTILE, "2026-10-31", "2026-10", "0001-01-01"]),
)
NUMBERS = st.one_of(st.floats(), st.integers(-(10**30), 10**30), st.floats(-1e6, 1e6), st.none())
VALUES = st.one_of(NUMBERS, WORDS)
UNIT = st.sampled_from(SIMPLE_UNITS)
STATUS = st.sampled_from(["ok", "flagged", "withheld"])
FIGURES = st.builds(Figure, WORDS, WORDS, VALUES, UNIT, STATUS, WORDS)
KINDS = st.sampled_from(["bridge", "bars", "lines", "fan", "funnel", "parts", "steps", "spans", "dots"])
NAMES = st.one_of(
    st.sampled_from(["actual", "expected", "low", "high", "x", "start", "end", "actual low"]), WORDS
)
SERIES = st.lists(st.tuples(NAMES, st.lists(NUMBERS, max_size=8).map(tuple)), max_size=5).map(tuple)
DAYS = st.lists(st.dates().map(str), max_size=8).map(tuple)
CHARTS = st.builds(
    Chart, WORDS, WORDS, KINDS, st.one_of(st.lists(WORDS, max_size=8).map(tuple), DAYS), SERIES, UNIT, WORDS
)
COLUMNS = st.lists(st.builds(Column, WORDS, WORDS, UNIT), max_size=14).map(tuple)
ROWS = st.lists(st.lists(VALUES, max_size=14).map(tuple), max_size=5).map(tuple)
TABLES = st.builds(Table, WORDS, WORDS, COLUMNS, ROWS, WORDS)


def _few(strategy: st.SearchStrategy[object], most: int) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


SECTIONS = st.builds(
    Section, WORDS, WORDS, _few(WORDS, 3), _few(FIGURES, 3), _few(TABLES, 2), _few(CHARTS, 2), STATUS, WORDS
)
MOMENTS = st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1), timezones=st.sampled_from([None, UTC]))
REVIEWS = st.builds(Review, WORDS, WORDS, WORDS, _few(SECTIONS, 3), _few(WORDS, 3), MOMENTS, WORDS)
FOUND = (
    Phase.explicit,
    Phase.reuse,
    Phase.generate,
)  # no shrinking: it takes minutes
QUICK = draws(30, phases=FOUND, suppress_health_check=list(HealthCheck))


@QUICK
@given(REVIEWS)
def test_any_review_becomes_a_whole_page(review: Review) -> None:
    page = render_review(review, "html")
    assert isinstance(page, str)
    faults, _ = read_page(page)
    assert faults == []
    assert len(page.encode()) <= MAX_BYTES
    assert "nan" not in {piece.strip("-") for piece in page.replace('"', " ").split()}


@QUICK
@given(REVIEWS)
def test_any_review_becomes_text_and_data(review: Review) -> None:
    for fmt in ("table", "md", "csv", "json", "yaml"):
        text = render_review(review, fmt)
        assert isinstance(text, str) and text.endswith("\n")
        text.encode()
    json.loads(render_review(review, "json"))


@settings(QUICK, max_examples=10)
@given(REVIEWS)
def test_any_review_becomes_a_workbook(review: Review) -> None:
    made = render_review(review, "xlsx")
    assert isinstance(made, bytes)
    book = load_workbook(io.BytesIO(made))
    assert all(c.data_type != "f" for sheet in book.worksheets for row in sheet.iter_rows() for c in row)
