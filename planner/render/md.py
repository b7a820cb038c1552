"""Markdown for a pull-request comment: what matters first, grounds folded away, hostile text disarmed."""

from __future__ import annotations

import re

from planner.render.document import Bars, Block, Document, Facts, Grid, build_document
from planner.render.model import Answer
from planner.render.numbers import percent
from planner.render.text import clean

_SPECIAL = re.compile(r"([\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")


def escape(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no cell break, no mention of a person."""
    text = _SPECIAL.sub(r"\\\1", clean(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("@", "@<!-- -->")


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as GitHub-flavoured Markdown."""
    del width, color  # a browser wraps and colours by itself
    return render_document(build_document(answer))


def render_document(document: Document) -> str:
    """Lay out any document as GitHub-flavoured Markdown."""
    lines = [f"### {escape(document.headline)}", ""]
    for text in document.summary:
        lines += [escape(text), ""]
    for block in (*document.front, *document.blocks):
        if not block.detail:
            lines += [f"#### {escape(block.title)}", "", *_body(block), ""]
    folded = [block for block in document.blocks if block.detail]
    if folded:
        lines += ["<details><summary>Assumptions, prices and proof</summary>", ""]
        for block in folded:
            lines += [f"#### {escape(block.title)}", "", *_body(block), ""]
        lines += ["</details>", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _body(block: Block) -> list[str]:
    if isinstance(block, Facts):
        return [
            f"- **{escape(label)}**: {escape(value)}" if label else f"  - {escape(value)}"
            for label, value in block.rows
        ]
    if isinstance(block, Grid):
        marks = ["---:" if align == "r" else "---" for align in block.align]
        rows = [[escape(cell) for cell in row] for row in block.rows]
        if block.total:
            rows[-1] = [f"**{cell}**" if cell else "" for cell in rows[-1]]
        table = [[escape(name) for name in block.header], marks, *rows]
        lines = [f"| {' | '.join(row)} |" for row in table]
        return [*lines, *([""] if block.notes else []), *(f"- {escape(note)}" for note in block.notes)]
    if isinstance(block, Bars):
        shown = [
            f"| {escape(label)} | {escape(value)} | {percent(ratio)} |" for label, value, ratio in block.rows
        ]
        notes = [f"- {escape(note)}" for note in block.notes]
        return [
            "| part | amount | share |",
            "| --- | ---: | ---: |",
            *shown,
            *([""] if notes else []),
            *notes,
        ]
    return [f"- {escape(item)}" for item in block.items]
