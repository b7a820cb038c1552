"""Faults of an input file and how they are shown: place, path, message, near miss, source line and caret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from itertools import takewhile

from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.records import record

Path = tuple[str | int, ...]
MAX_SHOWN = 50
_MAX_LINE = 160
_MAX_KEY = 60
_TIES = 12  # words that may be alike to the last digit


@record(frozen=True)
class Place:
    """A place in a text; `line` and `column` count from 1, `width` is in characters."""

    line: int
    column: int
    width: int = 1


@record(frozen=True)
class Fault:
    """One thing wrong; `at_key` points at the key, not its value; `place` overrides the look-up by `path`."""

    path: Path
    message: str
    did_you_mean: str = ""
    at_key: bool = False
    place: Place | None = None


class FaultError(InputError):
    """Faults of a file's values by their paths; who knows the file raises `Source.error(error.faults)` instead."""

    def __init__(self, *faults: Fault) -> None:
        """Keep the faults; the message names their paths."""
        self.faults = faults
        super().__init__("\n".join(fault_text(fault) for fault in faults))


def fault_text(fault: Fault) -> str:
    """A fault in words, without its place in a text."""
    hint = f" (did you mean '{fault.did_you_mean}'?)" if fault.did_you_mean else ""
    path = format_path(fault.path)
    return f"{path}: {fault.message}{hint}" if path else f"{fault.message}{hint}"


@record(frozen=True)
class Source:
    """A text with the places of its values and keys by path."""

    name: str
    text: str
    places: Mapping[Path, Place] = field(default_factory=dict)
    key_places: Mapping[Path, Place] = field(default_factory=dict)

    def locate(self, path: Path, *, at_key: bool = False) -> Place | None:
        """Return the place of `path`, or of its nearest ancestor that the text holds."""
        first, second = (self.key_places, self.places) if at_key else (self.places, self.key_places)
        place = first.get(path) or second.get(path)
        while place is None and path:
            path = path[:-1]
            place = self.key_places.get(path) or self.places.get(path)
        return place

    def error(self, faults: Iterable[Fault]) -> InputError:
        """Return the error to raise for these faults, in the order of their lines."""
        placed = [(fault.place or self.locate(fault.path, at_key=fault.at_key), fault) for fault in faults]
        placed.sort(key=lambda item: (item[0].line, item[0].column) if item[0] else (0, 0))
        lines = self.text.splitlines()
        unique = _unique(placed)
        shown = [self._render(place, fault, lines) for place, fault in unique[:MAX_SHOWN]]
        if len(unique) > MAX_SHOWN:
            shown.append(f"... and {len(unique) - MAX_SHOWN} more faults")
        return InputError("\n".join(shown))

    def _render(self, place: Place | None, fault: Fault, lines: Sequence[str]) -> str:
        message = _printable(fault_text(fault))
        if place is None:
            return f"{self.name}: {message}"
        head = f"{self.name}:{place.line}:{place.column}: {message}"
        if place.line > len(lines):
            return head
        return "\n".join([head, *_excerpt(lines[place.line - 1], place)])


def _unique(placed: list[tuple[Place | None, Fault]]) -> list[tuple[Place | None, Fault]]:
    seen: set[tuple[Place | None, Path, str]] = set()
    out = []
    for place, fault in placed:
        key = (place, fault.path, fault.message)
        if key not in seen:
            seen.add(key)
            out.append((place, fault))
    return out


def _excerpt(line: str, place: Place) -> list[str]:
    """Return the source line and a caret line, cut around the place where the line is long."""
    start = max(0, place.column - 1 - _MAX_LINE // 2) if len(line) > _MAX_LINE else 0
    cut = line[start : start + _MAX_LINE]
    before = line[start : place.column - 1]
    # A tab stays a tab and a wide character takes two cells: so the caret stands under its text.
    pad = "".join("\t" if c == "\t" else " " * _cells(c) for c in before)
    width = sum(_cells(c) for c in line[place.column - 1 : place.column - 1 + place.width]) or 1
    return [f"  {_printable(cut)}", f"  {pad}{'^' * max(1, min(width, _MAX_LINE // 2))}"]


def _printable(text: str) -> str:
    """Replace what could steer a terminal: a workload may come from anywhere."""
    return "".join(c if c == "\t" or c.isprintable() else "?" for c in text)


def _cells(char: str) -> int:
    """Return the terminal cells a character takes."""
    if char.isascii():
        return 1
    import unicodedata

    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def format_path(path: Path) -> str:
    """Write a path as `constraints.quota[0].limit`."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            word = part if len(part) <= _MAX_KEY else f"{part[: _MAX_KEY - 3]}..."
            out += f".{word}" if out else word
    return out


_LEAST_LETTERS = 4  # of a word that is looked for inside of names


def near(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known word nearest to `word`, or "" when none is near; one of the same letters comes first.

    Where none is alike, the shortest that begins with `word` (`p4d` for `p4d.24xlarge`), else the shortest that
    contains it but for marks (`rtx-6000-ada*` for `rtx6000ada-48gb-pcie`). A provider may be called by its company's
    name (`google` for `gcp`).

    Args:
        word: as written.
        known: what it may have been meant for.
        cutoff: least likeness, as of `difflib`.
    """
    known = tuple(known)
    word = by_provider(word) or word
    likely = alike(word, known, cutoff=cutoff)
    if likely:
        return likely
    table = {name.lower().replace("-", "_"): name for name in known}
    written = word.lower().replace("-", "_")
    longer = [name for name in table if len(written) > 1 and name.startswith(written)]
    plain = _letters(written)
    if not longer and len(plain) >= _LEAST_LETTERS:
        longer = [name for name in table if plain in _letters(name)]
    return table[min(longer, key=lambda name: (len(name), name))] if longer else ""


def need_columns(file: object, header: Sequence[str] | None, needed: Sequence[str]) -> None:
    """Refuse the header of a table that lacks a column.

    Args:
        file: its name, for the message.
        header: names of its columns, None without any.
        needed: names that it must have.

    Raises:
        InputError: it is empty, or names the columns that it lacks and what each may be called there.
    """
    if not header:
        raise InputError(f"{file}: is empty; its first line must name the columns {', '.join(needed)}")
    missing = [name for name in needed if name not in header]
    if missing:
        others = [name for name in header if name and name not in needed]
        close = {name: near(name, others) for name in missing}
        names = [
            f"'{name}'" + (f" (did you mean {close[name]!r}?)" if close[name] else "") for name in missing
        ]
        lacks = "there is no column" if len(missing) == 1 else "there are no columns"
        raise InputError(f"{file}:1: {lacks} {', '.join(names)}; needed: {', '.join(needed)}")


def by_provider(word: str) -> str:
    """A provider or place that is called by its company's name (`oci/us-ashburn-1` for `oracle/...`), else ""."""
    company, slash, rest = word.lower().partition("/")
    provider = _companies().get(company, "")
    return provider and provider + slash + rest


@cache
def _companies() -> dict[str, str]:
    """Providers by the names of their companies."""
    return {row["name"]: row["provider"] for row in bundled_rows("provider_names.csv")}


def alike(word: str, known: Iterable[str], *, cutoff: float) -> str:
    """Return the known word that `word` is most like, or "" when none reaches the cutoff; arguments as of `near`.

    Of equally alike ones that with most of its letters comes first, then what begins like it: `us-est-1` is rather
    `us-east-1` than `us-west-1`. Then the shorter one, then by the alphabet.
    """
    import difflib  # only wrong input needs it, and it is slow to import

    table = {name.lower().replace("-", "_"): name for name in known}
    written = word.lower().replace("-", "_")
    matches = difflib.get_close_matches(written, table, n=_TIES, cutoff=cutoff)
    exchanged = [name for name in matches[:3] if sorted(name) == sorted(written)]
    if exchanged or not matches:
        return table[exchanged[0]] if exchanged else ""
    likeness = difflib.SequenceMatcher(None, matches[0], written).ratio()
    equal = [name for name in matches if difflib.SequenceMatcher(None, name, written).ratio() == likeness]
    best = min(equal, key=lambda name: (-_shared(name, written), -_begun(name, written), len(name), name))
    return table[best]


def _shared(one: str, other: str) -> int:
    """Letters that two words have in common, in any order."""
    return (Counter(one) & Counter(other)).total()


def _begun(one: str, other: str) -> int:
    """Letters that two words begin with alike."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _letters(word: str) -> str:
    """The letters and digits of a word."""
    return "".join(letter for letter in word if letter.isalnum())


def named_twice(kind: str, names: Sequence[str]) -> Iterator[Fault]:
    """A fault for each of a list's entries that has the name of an earlier one; `kind` is the list's key."""
    for at, name in enumerate(names):
        if name in names[:at]:
            yield Fault((kind, at, "name"), f"two {kind} are called {name!r}")
