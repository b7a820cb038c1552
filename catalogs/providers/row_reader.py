"""Rows read one by one: an odd row is refused by name and costs neither its page nor its region."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from catalogs.errors import CatalogError
from catalogs.providers.base import FetchLog, ProviderError, SchemaChanged

Result = TypeVar("Result")
# What reading one damaged row may raise; anything else is a defect and ends the fetch.
_ROW_FAULTS = (
    CatalogError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError,
)  # fmt: skip


@dataclass
class RowReader:
    """Reads the rows of one interface in one place; safe to use from several threads.

    Attributes:
        what: kind of row for the log, such as `price`.
        log: is told of each refused row.
        place: `provider`, `region` and `api` for messages.
        n_read: rows that could be read.
        n_refused: rows that could not.
    """

    what: str
    log: FetchLog
    place: dict[str, str] = field(default_factory=dict)
    n_read: int = 0
    n_refused: int = 0
    _first: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read(
        self, items: Iterable[Any], parse: Callable[[Any], Result], name: Callable[[Any], str] = lambda _: ""
    ) -> list[Result]:
        """Parse each item; one that cannot be read is refused with its name and reason.

        Args:
            items: rows of an answer.
            parse: reads one row.
            name: the row's own name; may fail like `parse`.
        """
        out: list[Result] = []
        if isinstance(items, str | bytes) or not isinstance(items, Iterable):
            self._refuse("the list", f"{items!r:.40} is not a list")
            return out
        for at, item in enumerate(items):
            try:
                result = parse(item)
            except _ROW_FAULTS as error:
                if isinstance(error, ProviderError) and not isinstance(error, SchemaChanged):
                    raise  # a fault of the call, not of the row
                self._refuse(_name(item, name) or f"row {at + 1}", _reason(error))
            else:
                with self._lock:
                    self.n_read += 1
                out.append(result)
        return out

    def _refuse(self, name: str, reason: str) -> None:
        region = self.place.get("region", "")
        full = f"{region}/{name}" if region else name
        with self._lock:
            self.n_refused += 1
            self._first = self._first or f"{full}: {reason}"
        self.log.skip(self.what, full, reason)

    def require_some(self) -> None:
        """Refuse an answer none of whose rows could be read: that is a change of format, not an odd row.

        Raises:
            SchemaChanged: with the first row's reason.
        """
        if self.n_refused and not self.n_read:
            raise SchemaChanged(
                f"not one of {self.n_refused} rows can be read, first: {self._first}; update the planner",
                where=self.what,
                **self.place,
            )


def read_rows(
    reader: RowReader | None,
    items: Iterable[Any],
    parse: Callable[[Any], Result],
    name: Callable[[Any], str] = lambda _: "",
) -> list[Result]:
    """Parse each item through `reader`; without one the first odd row is an error."""
    return reader.read(items, parse, name) if reader else [parse(item) for item in items]


def _name(item: Any, name: Callable[[Any], str]) -> str:
    try:
        return str(name(item))
    except _ROW_FAULTS:
        return ""


def _reason(error: Exception) -> str:
    if isinstance(error, SchemaChanged):
        return f"{error.where}: missing or not as documented"
    if isinstance(error, KeyError) and error.args:
        return f"{error.args[0]}: missing"
    if isinstance(error, CatalogError):
        return str(error)
    return f"cannot be read ({type(error).__name__})"
