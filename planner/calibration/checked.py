"""Is a calibration's content what its fields say? A file that people may edit, read by every command."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from planner.market.machines import ACCELERATOR_COLUMNS, HARDWARE_COLUMNS

MOST = 1e21  # no size, rate or count of a run comes near
MOST_TEXT = 1_000
TEXT_COLUMNS = ("accelerator", "intra_node", "rdma", "generation", "vendor")
# Of a machine's numbers, in the units of the hardware table; an eighth of a card is the smallest on sale.
LEAST, MOST_OF_MACHINE = 0.01, 1e7
MAY_BE_ZERO = ("local_nvme_gib",)
# Columns that files of earlier versions may lack.
LATER = ("accelerator", "link_domain_accelerators", "fp4_tflops", "trainable")


def check_record(record: Any, where: str) -> None:
    """Compare each field of a record, and of the records in it, with its annotation.

    Numbers are finite, at least 0 and at most `MOST`.

    Raises:
        ValueError: names the first field that differs.
    """
    kind: Any = type(record)
    for name, hint in _hints(kind).items():
        _check(getattr(record, name), hint, f"{where}.{name}")


def checked_hardware(row: Any) -> dict[str, Any]:
    """Return the columns of a row of the hardware table.

    Raises:
        KeyError, ValueError: names the first column that is not there, or whose value no machine has.
    """
    if not isinstance(row, Mapping):
        raise ValueError("hardware is not a mapping")
    columns = (*HARDWARE_COLUMNS, *ACCELERATOR_COLUMNS)
    hardware = {name: row[name] for name in columns if name in row or name not in LATER}
    for name, value in hardware.items():
        hint = str if name in TEXT_COLUMNS else bool if name == "trainable" else float | None
        _check(value, hint, f"hardware.{name}")
        if hint == float | None and value is not None:
            _check_size(value, f"hardware.{name}", 0.0 if name in MAY_BE_ZERO else LEAST)
    return hardware


def _check_size(value: float, where: str, least: float) -> None:
    if not (value == least or LEAST <= value <= MOST_OF_MACHINE):
        raise ValueError(f"{where} must be {LEAST:g} to {MOST_OF_MACHINE:g}, got {value:g}")


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _check(value: Any, hint: Any, where: str) -> None:
    if not _fits(value, hint, where):
        raise ValueError(f"{where} is {str(value)[:60]!r}")


def _fits(value: Any, hint: Any, where: str) -> bool:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, element, where) for element in get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(element, get_args(hint)[0], where) for element in value)
    if is_dataclass(hint) and isinstance(value, hint):  # type: ignore[arg-type]
        check_record(value, where)
        return True
    return _is_plain(value, hint)


def _is_plain(value: Any, hint: Any) -> bool:
    if hint in (int, float):
        kinds = (int,) if hint is int else (int, float)
        return (
            isinstance(value, kinds)
            and not isinstance(value, bool)
            and 0 <= value <= MOST
            and math.isfinite(value)
        )
    if hint is str:
        return isinstance(value, str) and len(value) <= MOST_TEXT
    return isinstance(value, hint)
