"""Reading a user's machine file, YAML or CSV, with the line of every value."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from catalogs.errors import CatalogInputError
from catalogs.offers.static_fields import Entry, Faults

_EXAMPLE = (
    "machines: [{instance_type: my-h100, accelerator: h100-80gb-sxm, accelerator_count: 8, nodes: 2, vcpus: 192, "
    "memory_gib: 2048, price_per_hour: 6}]"
)
MAX_BYTES = 4 * 1024 * 1024
Values = dict[str, tuple[str, int]]


def read_entries(path: Path) -> tuple[Values, list[Entry], Faults]:
    """Return (defaults for all machines, machines as written, faults of the file's form).

    Raises:
        CatalogInputError: the file cannot be read at all.
    """
    try:
        if path.exists() and not path.is_file():
            raise CatalogInputError(f"{path}: not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise CatalogInputError(
                f"{path}: larger than {MAX_BYTES // 2**20} MiB; a list of machines is not"
            )
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise CatalogInputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise CatalogInputError(f"{path}: not a text file in UTF-8") from error
    if path.suffix.lower() == ".csv":
        return {}, *_read_csv(path, text)
    if path.suffix.lower() in (".yaml", ".yml"):
        return _read_yaml(path, text)
    raise CatalogInputError(f"{path}: expected a .yaml, .yml or .csv file")


def _read_csv(path: Path, text: str) -> tuple[list[Entry], Faults]:
    delimiter = max(",;\t", key=text.partition("\n")[0].count)  # as spreadsheets of many countries write
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    entries: list[Entry] = []
    faults: Faults = []
    try:
        header = [name.strip() for name in next(reader, [])]
        twice = sorted({name for name in header if header.count(name) > 1})
        faults.extend((1, f"{name}: the column appears twice") for name in twice)
        for row in reader:
            line = reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                faults.append((line, f"row: {len(row)} cells under {len(header)} columns"))
                continue
            values = {
                name: (cell.strip(), line) for name, cell in zip(header, row, strict=True) if cell.strip()
            }
            entries.append(Entry(line, values))
    except csv.Error as error:
        raise CatalogInputError(f"{path}:{reader.line_num}: not CSV ({error})") from error
    return entries, faults


def _read_yaml(path: Path, text: str) -> tuple[Values, list[Entry], Faults]:
    import yaml

    faults: Faults = []
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        problem = getattr(error, "problem", None) or "nested too deeply or not YAML"
        raise CatalogInputError(f"{path}:{line}: not YAML ({problem})") from error
    if root is None:
        return {}, [], [(1, "machines: the file is empty")]
    if not isinstance(root, yaml.MappingNode):
        return {}, [], [(1, f"machines: expected a mapping with a list `machines`: {_EXAMPLE}")]
    defaults: Values = {}
    entries: list[Entry] = []
    for key, node in root.value:
        name, line = _scalar(key), key.start_mark.line + 1
        if name == "machines" and isinstance(node, yaml.SequenceNode):
            entries = [_entry(item, faults) for item in node.value]
        elif name == "defaults" and isinstance(node, yaml.MappingNode):
            defaults = dict(_entry(node, faults).values)
        elif name == "version" and _scalar(node) == "1":
            continue
        else:
            expected = "version: 1, defaults (a mapping) and machines (a list)"
            faults.append((line, f"{name[:200]}: not understood here; the file has {expected}"))
    return defaults, entries, faults


def _scalar(node: Any) -> str:
    value = getattr(node, "value", None)
    return value if isinstance(value, str) else ""


def _entry(node: Any, faults: Faults) -> Entry:
    """Flatten one machine; lists and nested mappings are faults."""
    line = node.start_mark.line + 1
    values: Values = {}
    if node.id != "mapping":
        faults.append((line, "machines: expected a mapping of fields"))
        return Entry(line, values)
    for key, item in node.value:
        name, at = _scalar(key), key.start_mark.line + 1
        if item.id != "scalar":
            faults.append((at, f"{name}: expected a single value"))
        elif name in values:
            faults.append((at, f"{name}: given twice"))
        elif item.tag.rsplit(":", 1)[-1] != "null":
            values[name] = (item.value.strip(), at)
    return Entry(line, values)
