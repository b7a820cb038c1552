"""What an hour of an owned machine costs, line by line in exact decimals.

full: ((purchase - salvage) / (lifetime hours x utilisation)) + power + hosting / (hours a month x
utilisation).
marginal: power only, the extra cost of using a machine that stands there anyway.

Power is kW x PUE x USD per kWh for the hours used. Colocation rents of the public tables do not include
power, so the two are added. Utilisation spreads capital and hosting over the hours that the machine actually
works.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

HOURS_PER_YEAR = Decimal(8760)
HOURS_PER_MONTH = Decimal(730)
# A tenth of a micro-dollar per hour: below any price list's resolution.
_QUANTUM = Decimal("0.0000001")


@dataclass(frozen=True)
class CostPart:
    """One line of the arithmetic: `usd_per_hour` and how it came about."""

    label: str
    usd_per_hour: Decimal
    formula: str


@dataclass(frozen=True)
class OwnedCost:
    """The parts and their sum, which is the offer's price."""

    parts: tuple[CostPart, ...]
    basis: str

    @property
    def usd_per_hour(self) -> Decimal:
        """USD per machine-hour: the exact sum of the parts."""
        return sum((part.usd_per_hour for part in self.parts), Decimal(0))


def owned_cost_breakdown(
    *,
    power_kw: Decimal,
    usd_per_kwh: Decimal,
    pue: Decimal = Decimal(1),
    purchase_price_usd: Decimal = Decimal(0),
    salvage_usd: Decimal = Decimal(0),
    lifetime_years: Decimal = Decimal(1),
    hosting_usd_per_month: Decimal = Decimal(0),
    utilisation_ratio: Decimal = Decimal(1),
    cost_basis: str = "full",
) -> OwnedCost:
    """Compute the hourly cost of one owned machine.

    Args:
        power_kw: draw of the machine in use, before PUE.
        usd_per_kwh: electricity price.
        pue: power usage effectiveness of the site, >= 1.
        purchase_price_usd: price of one machine.
        salvage_usd: value at the end of its life.
        lifetime_years: years over which it is written off.
        hosting_usd_per_month: rent and service of one machine.
        utilisation_ratio: share of all hours in which it works, in (0, 1].
        cost_basis: `full`, or `marginal` for power only.

    Returns:
        The parts, each rounded to 1e-7 USD, so that their sum is exactly the price.
    """
    power = _rounded(power_kw * pue * usd_per_kwh)
    parts = [CostPart("power", power, f"{power_kw} kW x PUE {pue} x {usd_per_kwh} USD/kWh")]
    if cost_basis == "full":
        worked = HOURS_PER_YEAR * lifetime_years * utilisation_ratio
        capital = _rounded((purchase_price_usd - salvage_usd) / worked)
        hours = f"{lifetime_years} y x 8760 h x {utilisation_ratio}"
        formula = f"({purchase_price_usd} - {salvage_usd}) USD / ({hours})"
        parts.insert(0, CostPart("purchase", capital, formula))
        hosting = _rounded(hosting_usd_per_month / (HOURS_PER_MONTH * utilisation_ratio))
        if hosting:
            rent = f"{hosting_usd_per_month} USD / (730 h x {utilisation_ratio})"
            parts.append(CostPart("hosting", hosting, rent))
    return OwnedCost(tuple(parts), cost_basis)


def _rounded(value: Decimal) -> Decimal:
    return value.quantize(_QUANTUM, rounding=ROUND_HALF_EVEN)
