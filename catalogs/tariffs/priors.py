"""Interruption evidence per provider, family, accelerator and published band."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from catalogs.errors import CatalogError
from catalogs.patterns import matches
from catalogs.tariffs.read import Row, read_rows

_COLUMNS = (
    "provider", "kind", "family", "accelerator", "band", "rate_per_hour", "gang_exponent", "mean_wait_hours",
    "wait_exponent", "use", "confidence", "note", "source", "as_of",
)  # fmt: skip
_BASIS = {"measured": "measured", "band": "band", "family": "band", "prior": "prior"}


class InterruptionPrior(NamedTuple):
    """Interruptions of spot capacity.

    Attributes:
        rate_per_hour: interruptions per hour of one node that is up.
        gang_exponent: n nodes that must run together are interrupted `rate_per_hour * n ** gang_exponent`
            times per hour (0: they share every shock, 1: independent).
        mean_wait_hours: mean time until one node of spot capacity is there again.
        wait_exponent: the wait of n nodes is `mean_wait_hours * n ** wait_exponent`.
        basis: `measured` (traces), `band` (published monthly band, converted) or `prior` (pessimistic, no
            evidence).
    """

    rate_per_hour: float
    gang_exponent: float
    mean_wait_hours: float
    wait_exponent: float
    basis: str
    confidence: str
    note: str
    source: str
    as_of: str

    def gang_rate_per_hour(self, nodes: int) -> float:
        """Interruptions per hour of a gang of `nodes` that is up."""
        return float(self.rate_per_hour * nodes**self.gang_exponent)

    def gang_wait_hours(self, nodes: int) -> float:
        """Mean hours until `nodes` nodes of spot capacity are there again together."""
        return float(self.mean_wait_hours * nodes**self.wait_exponent)


class PriorTable:
    """Usable rows of interruption_priors.csv by kind, in table order."""

    def __init__(self, rows: list[Row]) -> None:
        """Take rows with `use = yes`."""
        self._rows = rows
        self._answers: dict[tuple[str, str, str, str], InterruptionPrior] = {}

    @classmethod
    def read(cls, directory: Path) -> PriorTable:
        """Read interruption_priors.csv."""
        rows = read_rows(directory / "interruption_priors.csv", _COLUMNS)
        return cls([row for row in rows if row["use"] == "yes"])

    def prior(self, provider: str, family: str, accelerator: str, band: str) -> InterruptionPrior:
        """See `Tariffs.interruption_prior`.

        Raises:
            CatalogError: the table lacks the default row.
        """
        key = (provider, family, accelerator, band)
        if key not in self._answers:
            self._answers[key] = self._find(*key)
        return self._answers[key]

    def _find(self, provider: str, family: str, accelerator: str, band: str) -> InterruptionPrior:
        band = band.replace(" ", "")
        for kind in ("measured", "band", "family", "prior"):
            for row in self._rows:
                if row["kind"] != kind or row["provider"] not in (provider, "*"):
                    continue
                if kind == "band" and row["band"] != band:
                    continue
                if matches(row["family"], family) and matches(row["accelerator"], accelerator):
                    return _prior(row)
        raise CatalogError("interruption_priors.csv has no default row (provider *, kind prior)")


def _prior(row: Row) -> InterruptionPrior:
    return InterruptionPrior(
        rate_per_hour=float(row["rate_per_hour"]),
        gang_exponent=float(row["gang_exponent"]),
        mean_wait_hours=float(row["mean_wait_hours"]),
        wait_exponent=float(row["wait_exponent"]),
        basis=_BASIS[row["kind"]],
        confidence=row["confidence"],
        note=row["note"],
        source=row["source"],
        as_of=row["as_of"],
    )
