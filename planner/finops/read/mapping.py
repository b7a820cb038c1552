"""Columns of a bill of your own, named in FOCUS terms: `--map cost=BilledCost`, kept in a mapping file.

`plain(COLUMN)` is a column's text without what only a machine tells apart: letters are composed (Unicode NFC), and
signs without a width (category Cf, such as a soft hyphen or a mark of direction) are left out. `project=Tags.team`
makes a column the value of a tag; all tags so named are the charge's Tags.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from planner.errors import InputError
from planner.files import write_atomically
from planner.files.tables import csv_rows
from planner.finops.read.columns import COST, focus_columns, match_columns
from planner.finops.read.fields import Field
from planner.finops.read.model import Finding
from planner.finops.read.select import text
from planner.inputs.faults import near
from planner.inputs.load import decode, read_limited

_HEADER = ("column", "focus")
_MAX_BYTES = 1 << 20
_PLAIN = re.compile(r"plain\((.+)\)")
_TAG = "Tags."


def read_mapping(pairs: Sequence[str], path: Path | None) -> dict[str, str]:
    """Return FOCUS column -> your column, or a constant in single quotes, and keep new pairs in the file.

    Args:
        pairs: `column=Focus` each; `'Usage'=ChargeCategory` gives every row the constant, `plain(Tags)=Tags` reads
            texts that look alike as the same, `project=Tags.team` makes a column the tag `team`.
        path: mapping file (CSV with the columns column and focus); read where it exists, written where pairs are new.

    Raises:
        InputError: no pair, no column of FOCUS, Tags and one of its keys, or the file cannot be read or written.
    """
    found = _load(path) if path is not None and path.exists() else {}
    given = [_pair(pair, f"--map {pair}") for pair in pairs]
    merged = found | {focus: column for column, focus in given}
    if "Tags" in merged and (tag := next((focus for focus in merged if _tag_of(focus)), "")):
        raise InputError(
            f"--map {merged[tag]}={tag}: beside {merged['Tags']}=Tags; name the tags one by one, or all"
        )
    if path is not None and merged != found:
        _save(path, merged)
    elif path is not None and not merged:
        raise InputError(f"--map-file {path}: no such file; name its columns first with --map COLUMN=FOCUS")
    return merged


def _pair(pair: str, place: str) -> tuple[str, str]:
    column, found, focus = (part.strip() for part in pair.rpartition("="))
    if not found or not column:
        raise InputError(f"{place}: write YOUR_COLUMN=FocusColumn, such as --map cost=BilledCost")
    known = focus_columns()[COST]
    if focus not in known and not _tag_of(focus):
        close = near(focus, list(known))
        raise InputError(
            f"{place}: FOCUS has no column {focus[:60]!r}{f' (did you mean {close!r}?)' if close else ''}"
        )
    return column, focus


def _tag_of(focus: str) -> str:
    """The key of `Tags.team`; empty for columns of FOCUS."""
    return focus.removeprefix(_TAG) if focus.startswith(_TAG) else ""


def _load(path: Path) -> dict[str, str]:
    rows = csv_rows(decode(read_limited(path, _MAX_BYTES), str(path)), path)
    if tuple(rows.fieldnames or ()) != _HEADER:
        raise InputError(f"{path}:1: a mapping file has the columns {', '.join(_HEADER)}")
    pairs = [_pair(f"{row['column']}={row['focus']}", f"{path}:{rows.line_num}") for row in rows]
    return {focus: column for column, focus in pairs}


def _save(path: Path, mapping: Mapping[str, str]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows((column, focus) for focus, column in mapping.items())
    write_atomically(path, text.getvalue().encode("utf-8"))


class Renaming:
    """A mapping that notes which of its columns the files have: one that no file has is a slip of the pen."""

    def __init__(self, mapping: Mapping[str, str]) -> None:
        """Begin without a file.

        Args:
            mapping: FOCUS column -> column of the files, or a constant in single quotes.
        """
        self.mapping = dict(mapping)
        self._unused = dict(mapping)
        self._seen: dict[str, None] = {}

    def fields(self, fields: Sequence[Field]) -> list[Field]:
        """The fields of one more file, see `with_mapping`."""
        used = _used(fields, self.mapping)
        self._seen.update((field.name, None) for field in fields)
        self._unused = {focus: column for focus, column in self._unused.items() if focus not in used}
        return with_mapping(fields, self.mapping)

    def findings(self) -> Iterator[Finding]:
        """A warning for every column and constant that no file took."""
        for focus, column in self._unused.items():
            yield Finding("warning", "unused_mapping", self._said(focus, column))

    def hint(self) -> str:
        """The same as the end of an error; empty where all are taken."""
        said = [self._said(focus, column) for focus, column in self._unused.items()]
        return f"; {'; '.join(said)}" if said else ""

    def _said(self, focus: str, column: str) -> str:
        place, names = f"--map {column}={focus}", list(self._seen)
        if _is_constant(column):
            if focus in self._seen:
                return f"{place}: is not used: a file has the column {focus} itself"
            return f"{place}: is not used: no file has one of the mapped columns"
        wanted = found[1] if (found := _PLAIN.fullmatch(column)) else column
        close = near(wanted, names)
        hint = f" (did you mean {close!r}?)" if close else f"; there are {', '.join(names[:12])}"
        return f"{place}: no file has a column {wanted[:60]!r}{hint}"


def _is_constant(column: str) -> bool:
    return len(column) > 1 and column[0] == column[-1] == "'"


def with_mapping(fields: Sequence[Field], mapping: Mapping[str, str]) -> list[Field]:
    """The fields of a file under their FOCUS names; constants are added to a file that has one of the columns.

    A column that is mapped takes the place of one that has the FOCUS name already. `plain(Tags)` finds `tags` too.
    """
    used = _used(fields, mapping)
    if not used:
        return list(fields)
    own = {field.name for field in fields}
    tags = {key: field for focus, field in used.items() if (key := _tag_of(focus))}
    named = {focus: field for focus, field in used.items() if not _tag_of(focus)}
    if tags:
        named.setdefault("Tags", _as_tags(tags))
    taken = {*named, *(field.name for field in used.values() if field.name in own)}
    kept = [field for field in fields if field.name not in taken]
    return [*(replace(field, name=focus) for focus, field in named.items()), *kept]


def _used(fields: Sequence[Field], mapping: Mapping[str, str]) -> dict[str, Field]:
    """What of a mapping is for a file: FOCUS column -> column or constant; nothing where it has none of the columns."""
    by_name = {field.name: field for field in fields}
    for column in mapping.values():
        found = _PLAIN.fullmatch(column)
        own = found and (found[1] if found[1] in by_name else match_columns(list(by_name)).get(found[1]))
        if own:
            by_name.setdefault(column, _plain(by_name[own]))
    renamed = {focus: by_name[column] for focus, column in mapping.items() if column in by_name}
    constants = {
        focus: Field(focus, text(column[1:-1]), "varchar")
        for focus, column in mapping.items()
        if renamed and _is_constant(column) and focus not in by_name
    }
    return renamed | constants


def _as_tags(tags: Mapping[str, Field]) -> Field:
    """Columns as the tags of a charge; one without a text is no tag."""
    values = (f"{text(key)}, NULLIF(TRIM(CAST({field.value} AS VARCHAR)), '')" for key, field in tags.items())
    return Field("Tags", f"CAST(JSON_OBJECT({', '.join(values)}) AS VARCHAR)", "varchar", is_rewritten=True)


def _plain(field: Field) -> Field:
    """A column's text with composed letters and no signs without a width; escapes of JSON are resolved first."""
    cell = field.value if field.type_name == "varchar" else field.read("json", is_csv=False)
    is_json = f"({cell} LIKE '{{%' OR {cell} LIKE '[%') AND JSON_VALID({cell})"
    read = f"CASE WHEN {is_json} THEN CAST(JSON_EXTRACT({cell}, '$') AS VARCHAR) ELSE {cell} END"
    value = f"NFC_NORMALIZE(REGEXP_REPLACE({read}, '\\p{{Cf}}', '', 'g'))"
    return Field(f"plain({field.name})", value, "varchar", spelling=field.spelling, is_rewritten=True)
