"""A review as text for a terminal or a pipe."""

from __future__ import annotations

from planner.finops.render.document import build_document
from planner.finops.review.model import Review
from planner.render.table import render_document


def render(review: Review, *, width: int = 100, color: bool = False) -> str:
    """Render a review as text of at most `width` columns."""
    return render_document(build_document(review), width=width, color=color)
