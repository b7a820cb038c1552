"""Text for a terminal or a pipe: no frame, aligned columns, no line wider than asked."""

from __future__ import annotations

from planner.render.document import Bars, Block, Document, Facts, Grid, Notes, build_document
from planner.render.model import Answer
from planner.render.numbers import percent
from planner.render.text import GAP, clean, columns, display_width, pad, wrap

_MIN_WIDTH = 40
_MAX_LABEL = 60
_MIN_BAR, _MAX_BAR = 8, 40
BAR_FULL = "\N{FULL BLOCK}"
BAR_PARTS = "\u258f\u258e\u258d\u258c\u258b\u258a\u2589"  # one to seven eighths
_BOLD, _DIM, _RED, _GREEN, _YELLOW, _RESET = (
    "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m",
)  # fmt: skip


class _Paint:
    """Colours whole lines, so that codes never disturb a width."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __call__(self, lines: list[str], *codes: str) -> list[str]:
        return (
            [f"{''.join(codes)}{line}{_RESET}" if line else line for line in lines]
            if self._enabled
            else lines
        )


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as text of at most `width` columns."""
    return render_document(build_document(answer), width=width, color=color)


def render_document(document: Document, *, width: int, color: bool) -> str:
    """Lay out any document as text of at most `width` columns."""
    width = max(width, _MIN_WIDTH)
    paint = _Paint(color)
    if document.front:
        return _screen(document, width, paint)
    lines = paint(wrap(clean(document.headline), width), _BOLD, _GREEN if document.success else _RED)
    for text in document.summary:
        lines += paint(wrap(clean(text), width), _BOLD)
    for block in document.blocks:
        lines += ["", *_block(block, width, paint)]
    return "\n".join(lines) + "\n"


def _screen(document: Document, width: int, paint: _Paint) -> str:
    """What fits on a screen: titles stand before what they name, not above it."""
    code = _GREEN if document.success else _RED
    first = document.summary or (document.headline,)
    lines = [line for text in first for line in paint(wrap(clean(text), width), _BOLD, code)]
    for at, block in enumerate(document.front):
        last = at == len(document.front) - 1
        lines += ["", *(_sentences(block, width) if last else _compact(block, width, paint))]
    return "\n".join(lines) + "\n"


def _sentences(block: Block, width: int) -> list[str]:
    """The closing lines, which need no title."""
    assert isinstance(block, Notes)
    return [line for item in block.items for line in wrap(clean(item), width, indent=GAP)]


def _compact(block: Block, width: int, paint: _Paint) -> list[str]:
    """A block without indentation: labels in capitals, a table's title as the header of its first column."""
    if isinstance(block, Facts):
        named = tuple((label.upper(), value) for label, value in block.rows)
        return _facts(Facts(block.title, named), width)
    if isinstance(block, Grid):
        rows = [tuple(clean(cell) for cell in row) for row in block.rows]
        body = columns([name.upper() for name in block.header], rows, block.align, width)
        notes = [
            f"{GAP}{line}" for note in block.notes for line in wrap(clean(note), width - len(GAP), indent=GAP)
        ]
        return [*paint(body[:1], _BOLD), *body[1:], *paint(notes, _DIM)]
    assert isinstance(block, Notes)
    marked = [line for item in block.items for line in wrap(f"! {clean(item)}", width, indent=GAP)]
    return [*paint([block.title.upper()], _BOLD), *(paint(marked, _YELLOW) if block.warning else marked)]


def _block(block: Block, width: int, paint: _Paint) -> list[str]:
    title = paint(wrap(clean(block.title), width), _BOLD)
    inner = width - len(GAP)
    if isinstance(block, Facts):
        return [*title, *_indented(_facts(block, inner))]
    if isinstance(block, Bars):
        notes = [line for note in block.notes for line in wrap(clean(note), inner, indent=GAP)]
        return [*title, *_indented(_bars(block, inner)), *paint(_indented(notes), _DIM)]
    if isinstance(block, Notes):
        lines = _indented([line for item in block.items for line in wrap(clean(item), inner, indent=GAP)])
        return [*title, *(paint(lines, _YELLOW) if block.warning else lines)]
    return [*title, *_grid(block, inner, paint)]


def _grid(block: Grid, width: int, paint: _Paint) -> list[str]:
    rows = [tuple(clean(cell) for cell in row) for row in block.rows]
    body = _indented(columns([name.upper() for name in block.header], rows, block.align, width))
    notes = _indented([line for note in block.notes for line in wrap(clean(note), width, indent=GAP)])
    return [*paint(body[:1], _DIM), *body[1:], *paint(notes, _DIM)]


def _facts(block: Facts, width: int) -> list[str]:
    labels = [clean(label) for label, _ in block.rows]
    column = min(max(display_width(label) for label in labels), _MAX_LABEL, width // 2)
    indent, lines = " " * (column + len(GAP)), list[str]()
    for label, (_, value) in zip(labels, block.rows, strict=True):
        if label:
            lines += wrap(f"{pad(label, column, 'l')}{GAP}{clean(value)}", width, indent=indent)
        else:  # goes on after the row before
            lines += [indent + line for line in wrap(clean(value), width - len(indent))]
    return lines


def _bars(block: Bars, width: int) -> list[str]:
    """One line per part: label, amount, share and a bar in eighths of a column; no bar where there is no room."""
    shown = [(clean(label), clean(value), percent(ratio), ratio) for label, value, ratio in block.rows]
    wide = max(display_width(row[0]) for row in shown), max(display_width(row[1]) for row in shown)
    share = max(display_width(row[2]) for row in shown)
    room = min(width - sum(wide) - share - 3 * len(GAP), _MAX_BAR)
    lines = []
    for label, value, percentage, ratio in shown:
        text = f"{pad(label, wide[0], 'l')}{GAP}{pad(value, wide[1], 'r')}{GAP}{pad(percentage, share, 'r')}"
        lines.append(f"{text}{GAP}{_bar(ratio, room)}".rstrip() if room >= _MIN_BAR else text)
    return [piece for line in lines for piece in wrap(line, width)] if room < _MIN_BAR else lines


def _bar(ratio: float, room: int) -> str:
    """A bar of `ratio` of `room` columns; what is above nothing shows at least an eighth of a column."""
    eighths = round(min(max(ratio, 0.0), 1.0) * room * 8)
    eighths = max(eighths, 1) if ratio > 0 else 0
    return BAR_FULL * (eighths // 8) + (BAR_PARTS[eighths % 8 - 1] if eighths % 8 else "")


def _indented(lines: list[str]) -> list[str]:
    return [GAP + line for line in lines]
