"""Dated exchange rates."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from catalogs.errors import CatalogInputError
from catalogs.tariffs.read import read_lists


class FxRate(NamedTuple):
    """USD per unit of `currency`."""

    currency: str
    rate: Decimal
    as_of: str
    source: str
    note: str = ""


class FxTable:
    """Market rates by currency, oldest first."""

    def __init__(self, rates: dict[str, list[FxRate]]) -> None:
        """Take the rates of each currency, oldest first."""
        self._rates = rates

    @classmethod
    def read(cls, directory: Path) -> FxTable:
        """Read fx.csv."""
        rates: dict[str, list[FxRate]] = {}
        columns = ("currency", "usd_per_unit", "kind", "as_of", "source", "note")
        for currency, rate, kind, as_of, source, note in read_lists(directory / "fx.csv", columns):
            if kind == "market":
                rates.setdefault(currency, []).append(FxRate(currency, Decimal(rate), as_of, source, note))
        return cls({currency: sorted(dated, key=lambda fx: fx.as_of) for currency, dated in rates.items()})

    def rate(self, currency: str, on: date | None) -> FxRate:
        """See `Tariffs.usd_per`."""
        if currency == "USD":
            return FxRate("USD", Decimal(1), "", "definition")
        dated = self._rates.get(currency)
        if not dated:
            currencies = ", ".join(["USD", *sorted(self._rates)])
            raise CatalogInputError(f"currency {currency!r}: no exchange rate; known: {currencies}")
        if on is None:
            return dated[-1]
        day = on.isoformat()
        earlier = [fx for fx in dated if fx.as_of <= day]
        if earlier:
            return earlier[-1]
        oldest = dated[0]
        return FxRate(
            currency, oldest.rate, oldest.as_of, oldest.source, f"{day} is before the oldest rate known"
        )
