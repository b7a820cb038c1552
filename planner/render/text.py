"""Plain-text layout by display width: cleaning, wrapping and column fitting, with no dependency.

A library for tables costs more start-up time than the whole answer, and needs more code to be told not to.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

GAP = "  "
_BREAK_AFTER = "/-_.,;:="
_CHOSEN = "> "  # before the row that is the answer; others begin with blanks
_MIN_WRAPPED = 9  # a narrower text column is unreadable
_MIN_JOINED = 20  # so is a narrower column of several joined ones
_LOCATION = re.compile(r"""["'(<]*(?:~?/|\\\\|\.{1,2}[/\\]|[A-Za-z]:[/\\]|[a-z][a-z0-9+.-]*://)""")
# blanks at which a line may end: not between a number and its unit
_BLANK = re.compile(r"(?<!\d) | (?!(?:%|h|min|s|MB|GB|TB|GiB)(?!\w))")


def clean(text: str) -> str:
    """Return one line that cannot steer a terminal: white space becomes blanks, controls are escaped."""
    if text.isprintable():
        return text
    parts = (
        c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode() for c in text
    )
    return " ".join("".join(parts).split())


def display_width(text: str) -> int:
    """Return the terminal columns that a cleaned text takes."""
    if text.isascii():
        return len(text)
    return sum(_char_width(c) for c in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def _words(text: str) -> list[str]:
    """What no line ends within: words, and numbers with their units."""
    return _BLANK.split(text)


def _split_word(word: str, width: int) -> list[str]:
    """Cut a word that is wider than a line."""
    if display_width(word) <= width:
        return [word]
    pieces, piece, used = [], "", 0
    for char in word:
        size = _char_width(char)
        if piece and used + size > width:
            cut = _last_break(piece)
            pieces.append(piece[:cut])
            piece = piece[cut:]
            used = display_width(piece)
        piece += char
        used += size
    return [*pieces, piece]


def _last_break(piece: str) -> int:
    """Return where a too long word is best cut: after its last separator, if that is in its second half."""
    cut = 1 + max(piece.rfind(mark) for mark in _BREAK_AFTER)
    return cut if 2 * cut >= len(piece) else len(piece)


def wrap(text: str, width: int, *, indent: str = "", whole_locations: bool = True) -> list[str]:
    """Break a cleaned text into lines of at most `width` columns; later lines begin with `indent`.

    Args:
        text: one cleaned line.
        width: columns no line exceeds, but for a location.
        indent: beginning of each line after the first.
        whole_locations: leave a path or URL that is wider than a line whole, on a line of its own, so that it can be
            copied and searched for; False where the next column begins at `width`.
    """
    width = max(width, 2 + len(indent))
    if display_width(text) <= width:
        return [text]
    lines, line, used = [], "", 0
    for word in _words(text):
        whole = whole_locations and _LOCATION.match(word) is not None
        for piece in [word] if whole else _split_word(word, width - len(indent)):
            size = display_width(piece)
            if line.strip() and used + 1 + size > width:
                lines.append(line.rstrip())
                line, used = indent + piece, len(indent) + size
            elif line.strip():
                line, used = f"{line} {piece}", used + 1 + size
            else:
                line, used = line + piece, used + size
    return [*lines, line.rstrip()]


def pad(text: str, width: int, align: str) -> str:
    """Fill a text with blanks to `width` columns; `align` is `l` or `r`."""
    fill = " " * max(0, width - display_width(text))
    return fill + text if align == "r" else text + fill


def _fit(
    natural: list[int], words: list[int], headings: list[int], align: str, width: int
) -> list[int] | None:
    """Shrink the widest text columns until the row fits, breaking lines first and words of cells only then.

    Args:
        natural: width of each column's widest cell.
        words: width of each column's longest word.
        headings: width of the longest word of each column's heading, which is never broken.
        align: one of `l`, `r` per column; only `l` columns shrink.
        width: columns to fit into.

    Returns:
        The widths, None where a column would become unreadable.
    """
    sizes = list(natural)
    excess = sum(sizes) + len(GAP) * (len(sizes) - 1) - width
    least = [min(size, max(word, _MIN_WRAPPED)) for size, word in zip(natural, headings, strict=True)]
    for floors in (words, least):
        while excess > 0:
            shrinkable = [i for i, a in enumerate(align) if a == "l" and sizes[i] > floors[i]]
            if not shrinkable:
                break
            sizes[max(shrinkable, key=lambda i: sizes[i])] -= 1
            excess -= 1
    return sizes if excess <= 0 else None


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], align: str, width: int) -> list[str]:
    """Lay out a grid without lines.

    Args:
        header: one word or two per column.
        rows: cleaned cells; numbers belong in right-aligned columns, which are never wrapped.
        align: one of `l`, `r` per column.
        width: columns no line exceeds.

    Returns:
        The lines; none of a grid without columns, as where every cell is empty.
    """
    if not align:
        return []
    lines = _grid(header, rows, align, width)
    if lines is None:
        narrow = _grid(header, rows, align, width, wrap_header=True), _joined(header, rows, align, width)
        lines = min((one for one in narrow if one is not None), key=len, default=None)
    return _stacked(header, rows, width) if lines is None else lines


def _joined(header: Sequence[str], rows: Sequence[Sequence[str]], align: str, width: int) -> list[str] | None:
    """A grid in which text columns side by side are one; None where even that does not fit."""
    starts = [i for i in range(len(align)) if i == 0 or "r" in (align[i], align[i - 1])]
    if len(starts) == len(align):
        return None
    runs = list(zip(starts, [*starts[1:], len(align)], strict=True))
    head, *body = [
        [", ".join(cell for cell in row[first:end] if cell) for first, end in runs] for row in (header, *rows)
    ]
    least = [_MIN_JOINED if end - first > 1 else 0 for first, end in runs]
    return _grid(head, body, "".join(align[first] for first in starts), width, wrap_header=True, least=least)


def _wrap_cell(cell: str, size: int) -> list[str]:
    """Break a cell into lines that begin below each other, also where the first begins with blanks."""
    text = cell.lstrip(" ")
    lead, indent = cell[: len(cell) - len(text)], GAP if text.startswith(_CHOSEN) else ""
    if max(map(display_width, _words(text))) > size - len(lead + indent):  # a word would break for it
        lead = indent = ""
    return [lead + line for line in wrap(text, size - len(lead), indent=indent, whole_locations=False)]


def _grid(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    align: str,
    width: int,
    *,
    wrap_header: bool = False,
    least: Sequence[int] = (),
) -> list[str] | None:
    """Lay out aligned columns; None where they do not fit.

    Args:
        header: as of `columns`, and so are the next three.
        rows: cleaned cells.
        align: one of `l`, `r` per column.
        width: columns no line exceeds.
        wrap_header: break the headers of numbers too.
        least: width that each column has at least, if its text is as long.
    """
    table = [list(header), *[list(row) for row in rows]]
    words = [max(display_width(word) for row in table for word in _words(row[i])) for i in range(len(align))]
    natural = [max(display_width(row[i]) for row in table) for i in range(len(align))]
    if wrap_header:
        natural = [
            max(
                size if a == "l" else 0,
                *(display_width(row[i]) for row in table[1:]),
                longest if a == "r" else 0,
            )
            for i, (size, longest, a) in enumerate(zip(natural, _header_words(header), align, strict=True))
        ]
        words = [min(word, size) for word, size in zip(words, natural, strict=True)]
    sizes = _fit(natural, words, _header_words(header), align, width)
    if sizes is None or any(size < min(pair) for size, *pair in zip(sizes, least, natural, strict=False)):
        return None
    sizes = _passed_on(table, sizes, natural)
    lines: list[str] = []
    for number, row in enumerate(table):
        cells = [
            _wrap_cell(cell, size) if a == "l" or not number else [cell]
            for cell, size, a in zip(row, sizes, align, strict=True)
        ]
        for level in range(max(len(cell) for cell in cells)):
            parts = [
                pad(cell[level] if level < len(cell) else "", size, a)
                for cell, size, a in zip(cells, sizes, align, strict=True)
            ]
            lines.append(GAP.join(parts).rstrip())
    return lines


def _passed_on(table: Sequence[Sequence[str]], sizes: list[int], natural: list[int]) -> list[int]:
    """The widths where those that need not wrap then do not: broken lines leave room in columns that wrap anyway."""
    broken = [i for i, size in enumerate(sizes) if size < natural[i]]
    spare, out = 0, list(sizes)
    for i in broken:
        cells = [_wrap_cell(row[i], sizes[i]) for row in table]
        used = max(display_width(line) for cell in cells for line in cell)
        if [_wrap_cell(row[i], used) for row in table] == cells:
            spare, out[i] = spare + sizes[i] - used, used
    lacking = {i: natural[i] - out[i] for i in broken}
    for lack in sorted(set(lacking.values())):  # columns alike, as two of dates, are treated alike
        alike = [i for i in broken if lacking[i] == lack]
        if lack * len(alike) > spare:
            return out if min(lacking.values()) < lack else sizes
        spare -= lack * len(alike)
        for i in alike:
            out[i] = natural[i]
    return out


def _header_words(header: Sequence[str]) -> list[int]:
    return [max(display_width(word) for word in name.split(" ")) for name in header]


def _stacked(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Write each row as one paragraph of `header value` pairs, for a width that holds no grid."""
    lines: list[str] = []
    for row in rows:
        text = ", ".join(f"{name} {cell}" for name, cell in zip(header, row, strict=True) if cell)
        lines += wrap(f"- {text}", width, indent=GAP, whole_locations=False)
    return lines
