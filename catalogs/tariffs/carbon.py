"""What machines draw and what their electricity emits: the tables of `catalogs/data/carbon`, by key.

Grids, PUE, maximum power and embodied carbon; read on first use. Unknown is None, never zero.
"""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from catalogs.errors import CatalogError
from catalogs.tariffs.read import Row, read_rows

DATA_DIRECTORY = Path(__file__).parent.parent / "data" / "carbon"
ANY = "*"
PUBLISHED, SAME_GRID, STATED = "published", "same_grid", "stated"
_NATIONAL = "national"  # and kinds of it
_CODE = 2  # letters of a country's code


class Grid(NamedTuple):
    """Grid intensity of a region: a yearly mean by location, not market-based and not marginal.

    `spread_ratio`: half of an 80 % interval as a factor, by the basis (`published`, `same_grid`, `national`, ...).
    `year`: None where a user states the figure.
    """

    gco2e_per_kwh: float
    year: int | None
    basis: str
    spread_ratio: float
    source: str


class Overhead(NamedTuple):
    """Power usage effectiveness of a provider: all power of a data centre over that of its machines."""

    pue: float
    low: float
    high: float
    confidence: str
    source: str


class Site(NamedTuple):
    """A site of machines: emissions of its electricity (None: unknown), and the building's overhead."""

    grid: Grid | None
    overhead: Overhead


class MaximumPower(NamedTuple):
    """Rated power of one accelerator in W: a cap, not a draw. `confidence`: read | unverified | assumed."""

    watts: float
    confidence: str
    source: str


class Draw(NamedTuple):
    """A figure of the energy model in an 80 % interval; ratios are of maximum power."""

    low: float
    mid: float
    high: float
    confidence: str

    @property
    def levels(self) -> tuple[float, float, float]:
        """Low, middle, high."""
        return self.low, self.mid, self.high


class Embodied(NamedTuple):
    """Making one server, in kgCO2e, its accelerators, and the years that it is spread over."""

    server_kgco2e: float
    accelerators: float
    lifetime_years: float


class CarbonTables:
    """Lookups over the carbon tables of one directory; each is read on first use."""

    def __init__(self, directory: Path) -> None:
        """Remember `directory`; nothing is read yet."""
        self.directory = directory

    def grid(self, provider: str, region: str) -> Grid | None:
        """The grid of a region, None where nobody publishes one."""
        return self._grids.get((provider, region))

    def site(self, provider: str, region: str) -> Site:
        """Grid and overhead of a region as the tables have them."""
        return Site(self.grid(provider, region), self.overhead(provider))

    def grid_of(self, place: str) -> Grid | None:
        """The grid that machines elsewhere share with a place: `provider/region`, or a country by name or code.

        A country is known by its national mean. None where the tables have no figure of the place.
        """
        provider, slash, region = place.partition("/")
        if not slash:
            return self._countries.get(place.casefold())
        grid = self.grid(provider, region)
        if grid is None or grid.basis != PUBLISHED:
            return grid
        return grid._replace(basis=SAME_GRID, spread_ratio=self.spread_ratio(SAME_GRID))

    @property
    def countries(self) -> tuple[str, ...]:
        """Codes of the countries that have a national mean."""
        return tuple(sorted(name.upper() for name in self._countries if len(name) == _CODE))

    def stated_grid(self, gco2e_per_kwh: float, source: str) -> Grid:
        """A grid intensity that a user states for machines of their own."""
        return Grid(gco2e_per_kwh, None, STATED, self.spread_ratio(STATED), source)

    def spread_ratio(self, basis: str) -> float:
        """Half of an 80 % interval of figures of a basis, as a factor."""
        return self._positive(self._bases[basis], "spread_ratio")

    def overhead(self, provider: str) -> Overhead:
        """Power usage effectiveness of a provider; the industry's mean where it has no row."""
        return self._overheads.get(provider) or self._overheads[ANY]

    def maximum_power(self, accelerator: str) -> MaximumPower | None:
        """Rated power of an accelerator, None where no source states it."""
        return self._power.get(accelerator)

    def embodied(self, provider: str, instance_type: str) -> Embodied | None:
        """What making the server of an instance type emitted, None where unknown."""
        return self._embodied.get((provider, instance_type))

    @cached_property
    def draws(self) -> dict[str, Draw]:
        """Figures of the energy model by name."""
        rows = self._read("draw.csv", "figure", "low", "mid", "high", "confidence")
        return {
            row["figure"]: Draw(
                self._positive(row, "low"), self._positive(row, "mid"), self._positive(row, "high"), row["confidence"]
            )
            for row in rows
        }  # fmt: skip

    @cached_property
    def _bases(self) -> dict[str, Row]:
        rows = self._read("grid_basis.csv", "basis", "spread_ratio", "description")
        return {row["basis"]: row for row in rows}

    @cached_property
    def _grids(self) -> dict[tuple[str, str], Grid]:
        rows = self._read(
            "grid_intensity.csv", "provider", "region", "gco2e_per_kwh", "year", "basis", "source"
        )
        return {
            (row["provider"], row["region"]): Grid(
                self._positive(row, "gco2e_per_kwh"), int(row["year"]), row["basis"],
                self.spread_ratio(row["basis"]), row["source"],
            )
            for row in rows
            if row["gco2e_per_kwh"]
        }  # fmt: skip

    @cached_property
    def _countries(self) -> dict[str, Grid]:
        """National means by the country's name and code, in small letters."""
        regions = read_rows(self.directory.parent / "regions.csv", ("provider", "region", "country"))
        codes = {(row["provider"], row["region"]): row["country"] for row in regions}
        grids: dict[str, Grid] = {}
        for row in self._read("grid_intensity.csv", "provider", "region", "basis", "of"):
            place = row["provider"], row["region"]
            if row["basis"].startswith(_NATIONAL) and place in self._grids:
                for name in (row["of"], codes.get(place, "")):
                    grids.setdefault(name.casefold(), self._grids[place])
        grids.pop("", None)
        return grids

    @cached_property
    def _overheads(self) -> dict[str, Overhead]:
        rows = self._read("pue.csv", "provider", "pue", "low", "high", "confidence", "source")
        return {
            row["provider"]: Overhead(
                self._positive(row, "pue"), self._positive(row, "low"), self._positive(row, "high"),
                row["confidence"], row["source"],
            )
            for row in rows
        }  # fmt: skip

    @cached_property
    def _power(self) -> dict[str, MaximumPower]:
        stated = read_rows(self.directory.parent / "accelerators.csv", ("accelerator", "tdp_w", "source"))
        listed = {
            row["accelerator"]: MaximumPower(self._positive(row, "tdp_w"), "read", row["source"])
            for row in stated
            if row["tdp_w"]
        }
        rows = self._read("accelerator_power.csv", "accelerator", "max_w", "confidence", "source")
        other_power = {
            row["accelerator"]: MaximumPower(self._positive(row, "max_w"), row["confidence"], row["source"])
            for row in rows
        }
        return other_power | listed

    @cached_property
    def _embodied(self) -> dict[tuple[str, str], Embodied]:
        names = ("provider", "instance_type", "server_kgco2e", "server_accelerators", "lifetime_years")
        return {
            (row["provider"], row["instance_type"]): Embodied(*(self._positive(row, name) for name in names[2:]))
            for row in self._read("embodied_servers.csv", *names)
        }  # fmt: skip

    def _read(self, name: str, *columns: str) -> list[Row]:
        return read_rows(self.directory / name, columns)

    def _positive(self, row: Row, column: str) -> float:
        """The number of a column.

        Raises:
            CatalogError: it is none, or not above 0.
        """
        try:
            value = float(row[column])
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            key = next(iter(row.values()))
            raise CatalogError(
                f"{self.directory}: {column} of {key} is {row[column]!r}, not a number above 0"
            )
        return value


@cache
def load_carbon() -> CarbonTables:
    """The bundled tables.

    Lookups raise a CatalogError where a table is missing or wrong.
    """
    return CarbonTables(DATA_DIRECTORY)
