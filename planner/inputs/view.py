"""A workload without pydantic: read-only sections with the same attributes, and their form in JSON.

A `SectionView` stands in for a section of `schema.py` that is valid: it has the section's attributes with their Python
types, is iterated, dumped and copied alike, and checks nothing. Every loaded workload is one, so that code sees the
same type whether pydantic was needed or not (see docs/adr/0004-compiled-workload.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pydantic import BaseModel


class SectionView:
    """One section of a workload; `kind` is the name of its pydantic class."""

    __slots__ = ("__dict__", "_kind", "_set")

    def __init__(self, kind: str, values: Mapping[str, Any], fields_set: frozenset[str]) -> None:
        """Take the values by field name, in the order of the fields, and the names the user gave."""
        self.__dict__.update(values)
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_set", fields_set)

    @property
    def model_fields_set(self) -> set[str]:
        """Names of the fields that were given, not defaulted."""
        return set(self._set)

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> SectionView:
        """Return a copy with some values replaced, unchecked as with pydantic."""
        changes = dict(update or {})
        return SectionView(self._kind, {**self.__dict__, **changes}, self._set | changes.keys())

    def model_dump(self, *, mode: str = "python", exclude_unset: bool = False) -> dict[str, Any]:
        """Return plain values: quantities as the text that reads back as them, as the pydantic section does.

        Args:
            mode: `json` has lists in place of tuples.
            exclude_unset: only what was given.
        """
        return {
            name: _plain(value, mode, exclude_unset)
            for name, value in self
            if name in self._set or not exclude_unset
        }

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.__dict__.items())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a workload is read-only: cannot set {name!r}; use model_copy(update=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a workload is read-only: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SectionView):
            return NotImplemented
        return self._kind == other._kind and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self._kind, tuple(self.__dict__)))

    def __reduce__(self) -> tuple[type[SectionView], tuple[str, dict[str, Any], frozenset[str]]]:
        return SectionView, (self._kind, dict(self.__dict__), self._set)

    def __repr__(self) -> str:
        return f"{self._kind}({', '.join(f'{name}={value!r}' for name, value in self)})"

    if TYPE_CHECKING:
        _kind: str
        _set: frozenset[str]

        def __getattr__(self, name: str) -> Any: ...


def _plain(value: Any, mode: str, exclude_unset: bool) -> Any:
    if isinstance(value, SectionView):
        return value.model_dump(mode=mode, exclude_unset=exclude_unset)
    if isinstance(value, tuple):
        parts = [_plain(item, mode, exclude_unset) for item in value]
        return parts if mode == "json" else tuple(parts)
    if isinstance(value, dict):
        return {key: _plain(item, mode, exclude_unset) for key, item in value.items()}
    if isinstance(value, timedelta):
        from planner.units import format_duration

        return format_duration(value)
    if isinstance(value, date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else value


def encode_section(section: BaseModel | SectionView) -> dict[str, Any]:
    """Return a section as plain JSON values that `decode_section` reads back with their types.

    Raises:
        TypeError: a value is of a type that no workload has.
    """
    kind = section._kind if isinstance(section, SectionView) else type(section).__name__
    values = {name: encode_value(value) for name, value in section}
    return {"section": kind, "set": sorted(section.model_fields_set), "values": values}


def decode_section(coded: Mapping[str, Any]) -> SectionView:
    """Return the view of a section from its JSON form.

    Raises:
        KeyError, TypeError, ValueError: the form is not one that `encode_section` wrote.
    """
    kind, values, stated = coded["section"], coded["values"], frozenset(coded["set"])
    if not isinstance(kind, str) or not stated <= values.keys():
        raise ValueError("not the form of a section")
    return SectionView(kind, {name: decode_value(value) for name, value in values.items()}, stated)


def as_view(section: BaseModel | SectionView) -> Any:
    """The read-only view of a valid section; typed as its model where it is used."""
    return decode_section(encode_section(section))


def with_defaults(section: Any, values: Mapping[str, Any]) -> Any:
    """The view of a section with other defaults: values that do not count as given."""
    view = section if isinstance(section, SectionView) else as_view(section)
    return SectionView(view._kind, {**dict(view), **values}, frozenset(view.model_fields_set))


def encode_value(value: Any) -> Any:
    """Return a value as plain JSON.

    Lists stand for tuples; what JSON has no type for is an object with one key that names the type.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [encode_value(item) for item in value]
    if isinstance(value, dict):
        return {"map": {key: encode_value(item) for key, item in value.items()}}
    if isinstance(value, timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if hasattr(value, "model_fields_set"):
        return encode_section(value)
    raise TypeError(f"a workload holds no {type(value).__name__}")


def decode_value(value: Any) -> Any:
    """Return the value that `encode_value` wrote."""
    if isinstance(value, list):
        return tuple(decode_value(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "section" in value:
        return decode_section(value)
    ((kind, inner),) = value.items()
    if kind == "map":
        return {key: decode_value(item) for key, item in inner.items()}
    if kind == "timedelta":
        return timedelta(*inner)
    if kind == "datetime":
        return datetime.fromisoformat(inner)
    if kind == "date":
        return date.fromisoformat(inner)
    if kind == "decimal":
        return Decimal(inner)
    raise ValueError(f"unknown type {kind!r}")
