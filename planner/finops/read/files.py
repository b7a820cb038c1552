"""The files of a bill: folders and globs opened up, the kind recognised by the first bytes, the same file met twice."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import hashlib
import io
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Literal, cast

from planner.errors import InputError, PlannerError
from planner.files import files_below
from planner.finops.engine.duckdb import first_line, ran_out
from planner.finops.read.cells import USUAL, Spelling
from planner.finops.read.clocks import Clock, clock_of, own_clocks
from planner.finops.read.model import Finding
from planner.inputs.faults import near
from planner.records import record

FileKind = Literal["csv", "parquet", "json"]
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson")
_HASHED_BYTES = 1 << 26  # larger files are hashed only where another has the same size
_CHUNK = 1 << 20
_DELIMITERS = ",;\t|"
_DATE = re.compile(rb"""(?:^|[,;\t|"])(\d{1,2})/(\d{1,2})/\d{4}(?=[,;\t|" \r\n]|$)""", re.MULTILINE)
_MONTHS = 12
# three figures after a comma may be thousands, so they prove nothing
_COMMA = re.compile(
    r"""(?:^|[;\t|"])[-−(]?[$€£¥]?\s?(?:\d+|\d{1,3}(?:[.\u00a0\u202f '’]\d{3})+),(?:\d{1,2}|\d{4,})\s?[$€£¥]?[)-]?"""
    r"""(?=[;\t|"]|$)""",
    re.MULTILINE,
)
_POINT = re.compile(r"""(?:^|[;\t|"])-?\d+[.]\d+(?=[;\t|"]|$)""", re.MULTILINE)
# a point that no thousands have: `0.123`, `1234.5`, `1.25`
_DECIMAL = re.compile(
    r"""(?:^|[;\t|"])-?(?:0\d*[.]\d+|\d{4,}[.]\d+|\d+[.](?:\d{1,2}|\d{4,}))(?=[;\t|"]|$)""", re.MULTILINE
)
_CHINESE = re.compile(rb"[\x00-\x7f]+|[\xa1-\xf7][\xa1-\xfe]")
_CHINESE_WORD = re.compile(rb"(?:[\xa1-\xf7][\xa1-\xfe]){2}")
_BEYOND_ASCII = bytes(range(0x80, 0x100))
_SEP = re.compile(r"sep=.\s*$", re.IGNORECASE)


@record(frozen=True)
class BillFile:
    """A file of the bill.

    Attributes:
        sha256: of its bytes; empty where it is large and no other has its size.
        encoding: of a CSV as Python names it; `utf-8-sig` for plain UTF-8 too.
        delimiter, header: of a CSV.
        skip: lines before the header.
        mixed: lines of a CSV end in different ways.
        spelling: of a CSV. Dates with slashes are day/month/year where some have a first part above 12 and none a
            second; numbers of a file without commas between cells have decimal commas where some are written `1,25` and
            none `1.25`; whose clock days are of, see `clocks.own_clocks`.
        doubtful: what the cells of a CSV can be read as in two ways: its `dates`, its `amounts`.
    """

    path: Path
    kind: FileKind
    sha256: str = ""
    encoding: str = "utf-8-sig"
    delimiter: str = ","
    header: tuple[str, ...] = ()
    skip: int = 0
    mixed: bool = False
    spelling: Spelling = USUAL
    doubtful: frozenset[str] = frozenset()


def find_files(paths: Sequence[str | Path]) -> list[Path]:
    """Return the files that paths, folders and globs stand for, each once, in order.

    Raises:
        InputError: a path does not exist, or a folder or glob has no bill in it.
    """
    if not paths:
        raise InputError("no bill was given: name a file, a folder or a glob")
    found: dict[Path, None] = {}
    for given in paths:
        for path in _expand(str(given)):
            found.setdefault(path.resolve() if path.is_symlink() else path, None)
    return list(found)


def _expand(given: str) -> list[Path]:
    path = Path(given)
    if path.is_dir():
        try:
            files = [item for item in files_below(path) if _is_bill(item, path)]
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from None
        if not files:
            raise InputError(f"{given}: the folder has no bill in it ({', '.join(SUFFIXES)})")
        return files
    if path.exists():
        return [path]
    if any(mark in given for mark in "*?["):
        names = glob.glob(given, recursive=True)  # noqa: PTH207  an absolute glob has no folder to start in
        files = sorted(Path(name) for name in names if Path(name).is_file())
        if not files:
            raise InputError(f"{given}: no file has such a name")
        return files
    siblings = [item.name for item in path.parent.iterdir()] if path.parent.is_dir() else []
    close = near(path.name, siblings)
    raise InputError(f"{given}: no such file{f' (did you mean {close!r}?)' if close else ''}")


def _is_bill(path: Path, root: Path) -> bool:
    """Tell bills from manifests, markers and hidden files."""
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(root).parts)
    manifest = path.name.lower().endswith("manifest.json")
    return not hidden and not manifest and path.name.lower().endswith(SUFFIXES)


def inspect_files(paths: Iterable[Path]) -> tuple[list[BillFile], list[Finding]]:
    """Look at every file's first bytes; leave out second copies of the same bytes.

    Raises:
        InputError: a file is empty, cannot be read, or is neither CSV, Parquet nor JSON.
    """
    kept: list[BillFile] = []
    clocks: dict[str, Clock] = {}
    findings = []
    listed = [(path, _size(path)) for path in paths]
    sizes = [size for _, size in listed]
    seen: dict[str, Path] = {}
    for path, size in listed:
        wanted = size <= _HASHED_BYTES or sizes.count(size) > 1
        sha256 = _hash(path) if wanted else ""
        if sha256 and sha256 in seen:
            text = f"holds the same bytes as {seen[sha256]} and is counted once"
            findings.append(Finding("warning", "duplicate_file", f"{path}: {text}", str(path)))
            continue
        if sha256:
            seen[sha256] = path
        file, clock = _inspect(path, sha256)
        kept.append(file)
        clocks |= {} if clock is None else {str(path): clock}
    kept = [_as_its_export(file, kept) for file in kept]
    findings += [one for file in kept for one in _doubts(file)]
    # of JSON the columns are not known here, so each file is judged alone
    own = own_clocks(clocks, {str(file.path): file.header or (str(file.path),) for file in kept})
    return [
        replace(file, spelling=replace(file.spelling, own_clock=True)) if str(file.path) in own else file
        for file in kept
    ], findings


def _as_its_export(file: BillFile, files: Sequence[BillFile]) -> BillFile:
    """A file that can be read in two ways, as those with the same columns: they are parts of one export."""
    for doubt, way in (("dates", "day_first"), ("amounts", "decimal_comma")):
        if doubt in file.doubtful:
            others = [one for one in files if one.header == file.header and doubt not in one.doubtful]
            ways = {bool(getattr(one.spelling, way)) for one in others}
            if len(ways) == 1:
                spelling = replace(file.spelling, **{way: ways.pop()})
                file = replace(file, spelling=spelling, doubtful=file.doubtful - {doubt})
    return file


def _doubts(file: BillFile) -> list[Finding]:
    """Say how dates and amounts are read that can be read in two ways."""
    texts = {
        "dates": "all dates with slashes can be day/month/year or month/day/year and are read as month/day/year: if "
        "they are not, write them as 2026-10-31",
        "amounts": "all amounts with a point have three figures behind it, as 1.234, which is read as a decimal "
        "point: if it marks thousands, write 1234 or 1234.00",
    }
    return [
        Finding("warning", "doubtful_spelling", f"{file.path}: {texts[doubt]}", str(file.path))
        for doubt in sorted(file.doubtful)
    ]


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path}: is not a regular file; save the bill to one, for it is read more than once"
        )
    size = status.st_size
    if size == 0:
        raise InputError(f"{path}: is empty; fetch the export again or leave the file out")
    return size


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, unpacked where it is gzip."""
    with path.open("rb") as probe:
        packed = probe.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if packed else path.open("rb")


def line_of(file: BillFile, test: Callable[[Mapping[str, str]], bool]) -> int | None:
    """Return the first line of a CSV whose row passes a test; None where none does, or the file is no CSV."""
    if file.kind != "csv":
        return None
    with io.TextIOWrapper(
        open_bytes(file.path), encoding=file.encoding, errors="replace", newline=""
    ) as lines:
        reader = csv.reader(lines, delimiter=file.delimiter)
        try:
            next(reader, None)
            for row in reader:
                if test(dict(zip(file.header, row, strict=False))):
                    return reader.line_num
        except csv.Error:
            return None
    return None


def _inspect(path: Path, sha256: str) -> tuple[BillFile, Clock | None]:
    try:
        with open_bytes(path) as file:
            start = file.read(_CHUNK)
    except (OSError, EOFError, zlib.error) as error:
        text = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read: {text}; fetch the export again") from None
    if start[:4] == b"PAR1":
        return BillFile(path, "parquet", sha256), None
    if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return BillFile(path, "json", sha256), clock_of(start)
    if b"\x00" in start[:4096] and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path}: is neither CSV, Parquet nor JSON; unpack it or export it as one of these")
    encoding, mixed, day_first = _scan(path, start)
    lines = start.decode(encoding, errors="replace").splitlines()
    # blank lines, and the line that tells a spreadsheet the delimiter
    skip = next((n for n, line in enumerate(lines) if line.strip() and not _SEP.match(line)), None)
    if skip is None:
        raise InputError(f"{path}: holds blank lines only; fetch the export again or leave the file out")
    delimiter = max(_DELIMITERS, key=lines[skip].count)
    names = next(csv.reader([lines[skip]], delimiter=delimiter))
    header = tuple(name.strip() or f"column {number}" for number, name in enumerate(names, 1))
    if repeated := sorted({name for name in header if header.count(name) > 1}):
        raise InputError(f"{path}:1: the header names {', '.join(map(repr, repeated))} twice")
    body = "\n".join(lines[skip + 1 :]) if delimiter != "," else ""
    comma = bool(_COMMA.search(body)) and not _POINT.search(body)
    plain = start.decode(encoding, errors="ignore").encode() if encoding == "utf-16" else start
    thousands = (
        not comma and bool(_POINT.search(body)) and not _COMMA.search(body) and not _DECIMAL.search(body)
    )
    doubts = frozenset([*(["dates"] if day_first is None else []), *(["amounts"] if thousands else [])])
    spelling = Spelling(bool(day_first), comma)
    found = BillFile(path, "csv", sha256, encoding, delimiter, header, skip, mixed, spelling, doubts)
    return found, clock_of(plain)


def _scan(path: Path, start: bytes) -> tuple[str, bool, bool | None]:
    """Read a CSV once for its encoding, whether its lines end in different ways, and which way its dates are written.

    UTF-16 is recognised by its mark, Windows text by bytes that are not UTF-8, wherever in the file they stand; Chinese
    text by such bytes that come in pairs, two pairs side by side somewhere (`Größe` has one).
    """
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        plain = start.decode("utf-16", errors="ignore").encode()
        return "utf-16", False, _day_first(plain) if _DATE.search(plain) else False
    decoder = codecs.getincrementaldecoder("utf-8")()
    encoding, both, feeds, returns, last = "utf-8-sig", 0, 0, 0, b""
    # a file without such dates at its start is not searched to its end
    day_first = _day_first(start) if _DATE.search(start) else False
    try:
        with open_bytes(path) as file:
            while chunk := file.read(_CHUNK):
                both += chunk.count(b"\r\n") + (last == b"\r" and chunk[:1] == b"\n")
                feeds, returns, last = feeds + chunk.count(b"\n"), returns + chunk.count(b"\r"), chunk[-1:]
                day_first = _day_first(chunk) if day_first is None else day_first
                if encoding == "utf-8-sig":
                    try:
                        decoder.decode(chunk)
                    except UnicodeDecodeError:
                        whole = chunk.strip(_BEYOND_ASCII)  # the ends of a chunk may be halves of a letter
                        pairs = not _CHINESE.sub(b"", whole) and _CHINESE_WORD.search(whole)
                        encoding = "gb18030" if pairs else "cp1252"
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read to its end: {error}; fetch the export again") from None
    return encoding, sum(count > 0 for count in (both, feeds - both, returns - both)) > 1, day_first


def _day_first(chunk: bytes) -> bool | None:
    """Tell day/month/year from month/day/year; None where every date can be either."""
    parts = {(int(first), int(second)) for first, second in _DATE.findall(chunk)}
    if any(second > _MONTHS for _, second in parts):
        return False
    return True if any(first > _MONTHS for first, _ in parts) else None


def damaged(path: Path, kind: str, error: Exception) -> PlannerError:
    """The error of a file that DuckDB cannot read, or has no room for."""
    if (ended := ran_out(error)) is not None:
        return type(ended)(f"{path}: {ended}")
    name = {"csv": "CSV", "json": "JSON", "parquet": "Parquet"}[kind]
    return InputError(f"{path}: cannot be read as {name}: {first_line(error)}; fetch the export again")


def duckdb_error() -> type[Exception]:
    """The class of DuckDB's errors, which is imported with it only."""
    import duckdb

    return duckdb.Error


def line_end(path: Path) -> str:
    """Return how lines end, as DuckDB's reader names it."""
    with open_bytes(path) as file:
        start = file.read(1 << 16)
    if b"\r\n" in start:
        return r"\r\n"
    return r"\n" if b"\n" in start or b"\r" not in start else r"\r"
