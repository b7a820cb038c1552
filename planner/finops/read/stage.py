"""Files put into typed Parquet once, so that every query after it is fast; what cannot be read is counted."""

from __future__ import annotations

import io
import itertools
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.finops.engine.duckdb import memory_to_write
from planner.finops.read.cells import bad_cells, is_number, tags_text
from planner.finops.read.columns import Kind, allowed_values
from planner.finops.read.fields import Field, fields_of
from planner.finops.read.files import BillFile, damaged, duckdb_error, line_end, line_of, open_bytes
from planner.finops.read.model import Finding
from planner.finops.read.select import quote, spelled, spelled_columns, text, unlisted
from planner.finops.read.typed_clocks import ExportClock, clock_of_file, export_clocks, with_clock
from planner.finops.read.usual import is_usual, unread_sql, usual_cell

if TYPE_CHECKING:
    import duckdb

NULLS = ("", "NULL", "null", "\\N")
_CATEGORY = "ChargeCategory"
_SHOWN, _LONGEST = 3, 40  # values that a message shows, and their letters
_SEPARATOR = "\x1f"  # between a column's name and the unread cell


class Stager:
    """Reads files through DuckDB into a folder.

    Attributes:
        findings: what could not be read.
        unchecked: files whose tags are left to whoever reads them all.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path, *, little: bool = False) -> None:
        self._connection = connection
        self._folder = folder
        self._little = little  # the files together: to plan a query over them costs more than to read them
        self._count = itertools.count(1)
        self._rewritten: dict[Path, Path] = {}
        self._clocks: dict[str, ExportClock] = {}  # of Parquet files
        self.findings: list[Finding] = []
        self.unchecked: list[str] = []

    def table(self, file: BillFile) -> str:
        """Return a FROM item for a file.

        Raises:
            InputError: there is no room to rewrite a file in another encoding.
        """
        if file.kind == "parquet":
            return f"READ_PARQUET({text(str(file.path))})"
        if file.kind == "json":
            # the whole file tells the fields: one that a sample lacks would be left out without a word
            every = "sample_size = -1, map_inference_threshold = -1, field_appearance_threshold = 0"
            if file.spelling.own_clock:  # DuckDB would put moments into UTC
                every += ", timestampformat = 'no moment is written %Y so'"
            return f"READ_JSON({text(str(file.path))}, {every}, maximum_object_size = 67108864)"
        plain = file.encoding == "utf-8-sig" and not file.mixed
        path = file.path if plain else self._as_utf8(file)
        columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in file.header)
        nulls = ", ".join(map(text, NULLS))
        return (
            f"READ_CSV({text(str(path))}, auto_detect = false, header = true, skip = {file.skip}, "
            f"delim = {text(file.delimiter)}, quote = '\"', escape = '\"', "
            f"new_line = {text(line_end(path))}, columns = {{{columns}}}, "
            f"nullstr = [{nulls}], store_rejects = true, rejects_limit = 0)"
        )

    def read_clocks(self, files: Sequence[BillFile]) -> None:
        """Learn by which clock Parquet files are read, which those of one export share.

        Raises:
            InputError: a file is damaged.
        """
        typed = [file for file in files if file.kind == "parquet"]
        self._clocks = export_clocks({
            str(file.path): clock_of_file(self._columns(file), self.table(file), partial(self._asked, file))
            for file in typed
        })  # fmt: skip

    def fields(self, file: BillFile) -> list[Field]:
        """Return the columns of a file, and the fields of structs after them.

        Raises:
            InputError: the file is damaged.
        """
        if file.kind == "csv":
            self._tell_spelling(file)
            return [Field(n, quote(n), "varchar", spelling=file.spelling) for n in file.header]
        self._tell_spelling(file)
        if file.kind == "json":
            return [replace(field, spelling=file.spelling) for field in self._columns(file)]
        clock = self._clocks.get(str(file.path), ExportClock())
        self._tell_read(file, [f"days and months of {clock}"] if str(clock) else [])
        return with_clock(self._columns(file), clock)

    def _columns(self, file: BillFile) -> list[Field]:
        """Return the typed columns of a file as they lie.

        Raises:
            InputError: the file is damaged.
        """
        try:
            relation = self._connection.sql(f"SELECT * FROM {self.table(file)} LIMIT 0")
        except duckdb_error() as error:
            raise damaged(file.path, file.kind, error) from None
        except RuntimeError:  # DuckDB cannot hand over a name that is no text
            no_text = ValueError("the name of a column is not UTF-8")
            raise damaged(file.path, file.kind, no_text) from None
        out: list[Field] = []
        for name, kind in zip(relation.columns, relation.types, strict=True):
            out += fields_of(name, quote(name), kind)
        return out

    def _asked(self, file: BillFile, sql: str) -> list[tuple[object, ...]]:
        """Answer a query over a file.

        Raises:
            InputError: the file is damaged.
        """
        try:
            return self._connection.execute(sql).fetchall()
        except duckdb_error() as error:
            raise damaged(file.path, file.kind, error) from None

    def _tell_spelling(self, file: BillFile) -> None:
        """Say how dates and numbers are read where that is not the usual way."""
        ways = [
            way
            for way, holds in (
                ("dates as day/month/year", file.spelling.day_first),
                ("commas as decimal points", file.spelling.decimal_comma),
                ("days and months of its own clock, not of UTC", file.spelling.own_clock),
            )
            if holds
        ]
        self._tell_read(file, ways)

    def _tell_read(self, file: BillFile, ways: Sequence[str]) -> None:
        if ways:
            message = f"{file.path}: is read with {' and '.join(ways)}"
            self.findings.append(Finding("info", "spelling", message, str(file.path)))

    def blank_columns(self, file: BillFile) -> set[str]:
        """Return the text columns of a Parquet file that may hold an empty text, by its statistics."""
        rows = self._connection.execute(
            "SELECT path_in_schema FROM PARQUET_METADATA(?) GROUP BY path_in_schema "
            "HAVING BOOL_OR(COALESCE(stats_min_value, stats_min, '') = '' "
            "AND COALESCE(stats_null_count, 0) < num_values)",
            [str(file.path)],
        ).fetchall()
        return {str(name) for (name,) in rows}

    def all_json(self, file: BillFile, names: Sequence[str]) -> bool:
        """Whether columns of a Parquet file hold nothing but JSON: one cell that is none would stop a query."""
        cells = " UNION ALL ".join(
            f"SELECT DISTINCT {name} AS cell FROM {self.table(file)}" for name in names
        )
        query = f"SELECT 1 FROM ({cells}) WHERE cell <> '' AND NOT JSON_VALID(cell) LIMIT 1"
        return not names or self._connection.execute(query).fetchone() is None

    def oddly_spelled(self, file: BillFile, columns: Mapping[str, str]) -> set[str]:
        """Return the columns of a Parquet file with allowed values, or currencies, that are spelled another way.

        Args:
            file: the file.
            columns: column of FOCUS -> its expression.
        """
        wanted = {name: columns[name] for name in sorted(spelled_columns(columns))}
        if not wanted:
            return set()
        odd = "BOOL_OR({} IS DISTINCT FROM {})"
        tests = ", ".join(odd.format(spelled(name, cell), cell) for name, cell in wanted.items())
        groups = ", ".join(wanted.values())
        row = self.one(file, f"SELECT {tests} FROM (SELECT DISTINCT {groups} FROM {self.table(file)})")
        return {name for name, odd in zip(wanted, row, strict=True) if odd}

    def all_numbers(self, file: BillFile, names: Sequence[str]) -> bool:
        """Whether columns of a Parquet file hold nothing but amounts that can be: one NaN is in every sum."""
        wrong = " OR ".join(f"NOT COALESCE({is_number(name)}, TRUE)" for name in names) or "FALSE"
        query = f"SELECT 1 FROM {self.table(file)} WHERE {wrong} LIMIT 1"
        return self._connection.execute(query).fetchone() is None

    def stage(self, file: BillFile, inputs: Mapping[str, tuple[Field, Kind]]) -> Path:
        """Write a file's columns into typed Parquet.

        Args:
            file: the file.
            inputs: name -> field and kind.

        Returns:
            Parquet with the columns, `x_source` and `x_bad` (the first cell of the row that could not be read).

        Raises:
            InputError, OutputError: the file is damaged; the temporary disk is full.
        """
        if self._little and is_usual(file) and (usual := self._stage_usual(file, inputs)) is not None:
            return usual
        is_csv = file.kind == "csv"
        typed = {name: field.read(kind, is_csv=is_csv) for name, (field, kind) in inputs.items()}
        typed |= {name: spelled(name, typed[name]) for name in spelled_columns(typed)}
        if "Tags" in typed and inputs["Tags"][0].type_name == "varchar":
            typed["Tags"] = tags_text(inputs["Tags"][0].value, typed["Tags"])
        raw = {name: field.value for name, (field, kind) in inputs.items() if kind != "text"}
        target = self.write(file, self.typed_sql(file, typed, raw))
        self.report_bad(file, target, {name: (field.name, kind) for name, (field, kind) in inputs.items()})
        self._report_unknown_values(file, target, typed)
        return target

    def _stage_usual(self, file: BillFile, inputs: Mapping[str, tuple[Field, Kind]]) -> Path | None:
        """Write a CSV as `stage` does where nothing of it must be told; else nothing is left of it."""
        typed = {name: usual_cell(field.value, kind) for name, (field, kind) in inputs.items()}
        typed |= {name: spelled(name, typed[name]) for name in spelled_columns(typed)}
        raw = {name: field.value for name, (field, kind) in inputs.items() if kind != "text"}
        sql = self.typed_sql(file, typed, raw, names_bad=False)
        known = len(self.findings)  # with how the file is encoded, which is told once
        target = self.write(file, sql)
        told = "x_bad IS NOT NULL" + (f" OR {unlisted(_CATEGORY)}" if _CATEGORY in typed else "")
        found = self._connection.execute(
            f"SELECT 1 FROM READ_PARQUET({text(str(target))}) WHERE {told} LIMIT 1"
        )
        if found.fetchone() is None:
            return target
        del self.findings[known:]
        target.unlink()
        return None

    def typed_sql(
        self, file: BillFile, typed: Mapping[str, str], raw: Mapping[str, str], *, names_bad: bool = True
    ) -> str:
        """Return the SELECT of typed columns and `x_bad`.

        Args:
            file: the file.
            typed: name -> expression.
            raw: name -> raw cell, for those that may not be readable.
            names_bad: `x_bad` names the cell that could not be read, instead of being empty where one is.
        """
        cells = {name: quote(name + _SEPARATOR) for name in raw}
        bad = (_named_bad if names_bad else unread_sql)({name: (quote(name), cells[name]) for name in raw})
        items = [f"{value} AS {quote(name)}" for name, value in typed.items()]
        items += [f"{cell} AS {cells[name]}" for name, cell in raw.items()]
        where = ""
        if file.kind == "csv":  # exports put behind one another bring their headers along
            same = " AND ".join(f"{quote(n)} = {text(n)}" for n in file.header[:2])
            # and spreadsheets rows without a cell
            filled = ", ".join(map(quote, file.header))
            where = f" WHERE NOT COALESCE({same}, FALSE) AND COALESCE({filled}, NULL) IS NOT NULL"
        # each expression once, in a select of its own: to bind it costs a small file more than its rows
        once = f"SELECT {', '.join(items)} FROM {self.table(file)}{where}"
        return f"SELECT {', '.join(map(quote, typed))}, {bad} AS x_bad FROM ({once})"

    def write(self, file: BillFile, sql: str) -> Path:
        """Write a SELECT over a file into Parquet, and report rows that could not be read.

        Raises:
            InputError, OutputError: the file is damaged; the temporary disk is full.
        """
        target = self._folder / f"{next(self._count):05d}.parquet"
        try:
            self._copy(f"SELECT *, {text(str(file.path))} AS x_source FROM ({sql})", target)
        except (duckdb_error(), OSError) as error:
            raise damaged(file.path, file.kind, error) from None
        if file.kind == "csv":
            self._report_rejects(file)
        return target

    def _copy(self, query: str, target: Path) -> None:
        with nullcontext() if self._little else memory_to_write(self._connection):
            self._connection.execute(f"COPY ({query}) TO {text(str(target))} (FORMAT parquet)")

    def one(self, file: BillFile, sql: str) -> tuple[object, ...]:
        """Return the first row of a query over a file.

        Raises:
            InputError: the file is damaged.
        """
        rows = self._asked(file, sql)
        if file.kind == "csv":
            self._connection.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
        return rows[0] if rows else ()

    def _report_rejects(self, file: BillFile) -> None:
        """Report rows that are no rows of the table, with their lines."""
        found = []
        if self._connection.execute("SELECT 1 FROM reject_errors LIMIT 1").fetchone():
            found = self._connection.execute(
                "SELECT line, error_type::VARCHAR, error_message, "
                "GREATEST(LENGTH(csv_line) - LENGTH(REPLACE(csv_line, chr(10), '')), 0) + 1 "
                "FROM reject_errors ORDER BY line"
            ).fetchall()
        self._connection.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
        if not found:
            return
        lines: dict[int, tuple[str, int]] = {}
        for line, kind, message, length in found:
            lines.setdefault(
                int(line), (f"{kind.lower()}: {message.splitlines()[0].rstrip('.')}", int(length))
            )
        first = next(iter(lines))
        rows = sum(length for _, length in lines.values())
        shown = ", ".join(str(line) for line in list(lines)[:5]) + (", ..." if len(lines) > 5 else "")
        message = (
            f"{file.path}: {rows:,} malformed {'line' if rows == 1 else 'lines'} could not be read (at line "
            f"{shown}); first: {lines[first][0]}. Their cost is unknown and in no figure; fetch the export again"
        )
        self.findings.append(Finding("error", "rejected_rows", message, f"{file.path}:{first}", rows))

    def report_bad(self, file: BillFile, target: Path, columns: Mapping[str, tuple[str, Kind]]) -> None:
        """Report cells that hold no value of their kind; their row is kept and the value is unknown.

        Args:
            file: the file.
            target: what was written of it.
            columns: name in `x_bad` -> name in the file, and kind.
        """
        rows = self._connection.execute(
            f"SELECT SPLIT_PART(x_bad, {text(_SEPARATOR)}, 1), COUNT(*), "
            f"MIN(SPLIT_PART(x_bad, {text(_SEPARATOR)}, 2)) "
            f"FROM READ_PARQUET({text(str(target))}) WHERE x_bad IS NOT NULL GROUP BY 1 ORDER BY 1"
        ).fetchall()
        for name, count, example in rows:
            where = str(file.path)
            if line := line_of(file, partial(_has, columns[name][0], example)):
                where = f"{file.path}:{line}"
            kind = columns[name][1]
            hint = "; write decimal points" if kind == "number" and "," in example else ""
            word = {"number": "a number", "moment": "a moment like 2026-01-31T15:00:00Z", "json": "JSON"}
            message = bad_cells(where, name, word.get(kind, kind), example, count, hint)
            severity = "error" if kind in ("number", "moment") else "warning"
            self.findings.append(Finding(severity, "bad_cells", message, where, count))  # type: ignore[arg-type]

    def _report_unknown_values(self, file: BillFile, target: Path, names: Collection[str]) -> None:
        """Report charge categories that FOCUS does not have: such rows are in no figure that needs one."""
        if _CATEGORY not in names:
            return
        rows = self._connection.execute(
            f"SELECT {_CATEGORY}, COUNT(*) AS n FROM READ_PARQUET({text(str(target))}) WHERE {unlisted(_CATEGORY)} "
            "GROUP BY 1 ORDER BY n DESC, 1"
        ).fetchall()
        if not rows:
            return
        count = sum(n for _, n in rows)
        shown = ", ".join(repr(str(value)[:_LONGEST]) for value, _ in rows[:_SHOWN])
        more = ", ..." if len(rows) > _SHOWN else ""
        message = (
            f"{file.path}: {_CATEGORY} is {shown}{more} in {count:,} {'row' if count == 1 else 'rows'}, which FOCUS "
            f"does not have ({', '.join(allowed_values(_CATEGORY))}): figures that need it leave them out; correct the "
            f"values or set one for all rows with --map \"'Usage'={_CATEGORY}\""
        )
        self.findings.append(Finding("error", "unknown_category", message, str(file.path), count))

    def _as_utf8(self, file: BillFile) -> Path:
        """Rewrite a CSV as UTF-8 with one kind of line end; once, however often it is asked for."""
        if file.path in self._rewritten:
            return self._rewritten[file.path]
        target = self._rewritten[file.path] = self._folder / f"{next(self._count):05d}.csv"
        try:
            with (
                open_bytes(file.path) as packed,
                io.TextIOWrapper(packed, encoding=file.encoding, errors="replace") as old,
                target.open("w", encoding="utf-8", newline="") as new,
            ):
                for line in old:
                    new.write(line.rstrip("\r\n") + "\n")
        except OSError as error:
            raise InputError(f"{file.path}: cannot be rewritten as UTF-8: {error.strerror}") from None
        if file.encoding == "utf-8-sig":
            return target
        message = f"{file.path}: is {file.encoding.upper()} text and was read as such; UTF-8 is safer"
        self.findings.append(Finding("info", "encoding", message, str(file.path)))
        return target


def _named_bad(cells: Mapping[str, tuple[str, str]]) -> str:
    """Return the expression of the first cell of a row that could not be read, with its column's name."""
    tests = [
        f"CASE WHEN {value} IS NULL "
        f"THEN {text(name + _SEPARATOR)} || NULLIF(TRIM(CAST({cell} AS VARCHAR)), '') END"
        for name, (value, cell) in cells.items()
    ]
    return f"COALESCE({', '.join(tests)}, NULL)" if tests else "CAST(NULL AS VARCHAR)"


def _has(column: str, cell: str, row: Mapping[str, str]) -> bool:
    return row.get(column, "").strip() == cell
