"""Storage services that a run can read its data from: prices and limits by provider and region."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from catalogs.patterns import matches
from catalogs.tariffs.read import Row, read_rows

_COLUMNS = (
    "provider", "service", "kind", "region", "measure", "value", "reference", "use", "confidence", "note", "source",
    "as_of",
)  # fmt: skip
READS = "usd_per_1000_reads"
_Measures = dict[str, list[Row]]
_UNUSABLE = 3


@dataclass(frozen=True)
class Figure:
    """One price or limit; `basis` is `list`, or `derived` when taken from another region or provider."""

    value: Decimal
    basis: str
    confidence: str
    source: str
    as_of: str
    note: str


class StorageService:
    """A service in one region; `kind` is `object`, `block`, `file_system` or `local_nvme`.

    Measures: `usd_per_gib_month`, `usd_per_1000_reads`, `usd_per_mb_s_month` (provisioned throughput above
    `included_mb_s`); limits in MB/s: `volume_mb_s` (one volume), `client_mb_s` (one machine), `small_client_mb_s`
    (objects below 1 MiB), `total_mb_s` (service or account), `mb_s_per_tib` (bought with capacity); `min_gib`,
    `step_gib`.
    """

    __slots__ = ("_known", "_rows", "kind", "name", "provider", "region")

    def __init__(self, provider: str, name: str, kind: str, region: str, rows: _Measures) -> None:
        """Take the rows of the service by measure; they are read when asked for."""
        self.provider, self.name, self.kind, self.region = provider, name, kind, region
        self._rows = rows
        self._known: dict[str, Figure | None] = {}

    def figure(self, measure: str) -> Figure | None:
        """The region's own figure, else that of all regions, else the reference region's; None where unknown."""
        if measure not in self._known:
            self._known[measure] = self._figure(measure)
        return self._known[measure]

    def _figure(self, measure: str) -> Figure | None:
        best, least = None, _UNUSABLE
        for row in self._rows.get(measure, ()):
            rank = self._rank(row)
            if rank < least:
                best, least = row, rank
        return None if best is None else _known(best, least)

    def _rank(self, row: Row) -> int:
        """0 the region's own, 1 of all regions, 2 of the reference region."""
        place = row["region"]
        if place == "*":
            return 1
        is_own = matches(place, self.region)
        return 0 if is_own else 2 if row["reference"] == "yes" else _UNUSABLE

    def value(self, measure: str) -> float | None:
        """A figure as a float, None where unknown."""
        figure = self.figure(measure)
        return None if figure is None else float(figure.value)


class ServiceTable:
    """The usable rows of storage_services.csv."""

    def __init__(self, rows: list[Row]) -> None:
        """Take rows with `use = yes`."""
        self._services: dict[str, dict[tuple[str, str], _Measures]] = {}
        self._at: dict[tuple[str, str], tuple[StorageService, ...]] = {}
        for row in rows:
            services = self._services.setdefault(row["provider"], {})
            measures = services.setdefault((row["service"], row["kind"]), {})
            measures.setdefault(row["measure"], []).append(row)

    @classmethod
    def read(cls, directory: Path) -> ServiceTable:
        """Read storage_services.csv."""
        path = directory / "storage_services.csv"
        return cls([row for row in read_rows(path, _COLUMNS) if row["use"] == "yes"])

    def services(self, provider: str, region: str) -> tuple[StorageService, ...]:
        """See `Tariffs.storage_services`."""
        key = provider, region
        if key not in self._at:
            by_name = self._services.get(provider, {})
            self._at[key] = tuple(
                StorageService(provider, name, kind, region, rows) for (name, kind), rows in by_name.items()
            )
        return self._at[key]

    def anywhere(self) -> dict[str, Figure]:
        """Figures that hold for every provider, by measure."""
        shared = self._services.get("*", {}).values()
        return {measure: _known(rows[0], 1) for measures in shared for measure, rows in measures.items()}

    def dearest_reads(self) -> Figure | None:
        """The dearest price of read requests known, where a provider's own is not."""
        every = (measures for services in self._services.values() for measures in services.values())
        row = max(
            (row for rows in every for row in rows.get(READS, ())),
            key=lambda one: Decimal(one["value"]),
            default=None,
        )
        if row is None:
            return None
        service = f"{row['provider']} {row['service']}"
        note = f"no price of requests is known here: the highest known one is used ({service})"
        return _figure(row, "derived", note)


def _known(row: Row, rank: int) -> Figure:
    if rank < 2:
        return _figure(row, "list", row["note"])
    return _figure(row, "derived", f"figure of {row['region']}; the region's own is not known")


def _figure(row: Row, basis: str, note: str) -> Figure:
    return Figure(Decimal(row["value"]), basis, row["confidence"], row["source"], row["as_of"], note)
