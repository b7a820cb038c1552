"""What an hour of an owned machine costs, line by line in exact decimals.

marginal: power + hosting / (hours a month x utilisation): what a machine that is already paid still asks for.
full: the same + (purchase - salvage) / (lifetime hours x utilisation). The purchase is money of the past: it never
falls due again.

Power is kW x PUE x USD per kWh for the hours used. Colocation rents of the public tables do not include
power, so the two are added. Utilisation spreads purchase and hosting over the hours that the machine actually
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
    """What is paid for an hour, what the purchase adds, and which of the two sums competes.

    Attributes:
        paid: power and hosting.
        purchase: the purchase spread over the hours of its life; None where its price is unknown.
        basis: `marginal` (what is paid) or `full` (the purchase too).
    """

    paid: tuple[CostPart, ...]
    purchase: CostPart | None
    basis: str

    @property
    def parts(self) -> tuple[CostPart, ...]:
        """The parts that the offer's price counts."""
        if self.basis == "marginal" or self.purchase is None:
            return self.paid
        return self.purchase, *self.paid

    @property
    def usd_per_hour(self) -> Decimal:
        """USD per machine-hour, the offer's price: the exact sum of the parts."""
        return sum((part.usd_per_hour for part in self.parts), Decimal(0))

    @property
    def marginal_usd_per_hour(self) -> Decimal:
        """USD per machine-hour of power and hosting: all that falls due."""
        return sum((part.usd_per_hour for part in self.paid), Decimal(0))

    @property
    def full_usd_per_hour(self) -> Decimal | None:
        """USD per machine-hour with the purchase; None where its price is unknown."""
        return None if self.purchase is None else self.marginal_usd_per_hour + self.purchase.usd_per_hour


def owned_cost_breakdown(
    *,
    power_kw: Decimal,
    usd_per_kwh: Decimal,
    pue: Decimal = Decimal(1),
    purchase_price_usd: Decimal | None = None,
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
        purchase_price_usd: price of one machine, None where unknown.
        salvage_usd: value at the end of its life.
        lifetime_years: years over which it is written off.
        hosting_usd_per_month: rent and service of one machine.
        utilisation_ratio: share of all hours in which it works, in (0, 1].
        cost_basis: `full`, or `marginal` for power and hosting only.

    Returns:
        The parts, each rounded to 1e-7 USD, so that their sum is exactly the price.
    """
    power = _rounded(power_kw * pue * usd_per_kwh)
    paid = [CostPart("power", power, f"{power_kw} kW x PUE {pue} x {usd_per_kwh} USD/kWh")]
    hosting = _rounded(hosting_usd_per_month / (HOURS_PER_MONTH * utilisation_ratio))
    if hosting:
        rent = f"{hosting_usd_per_month} USD / (730 h x {utilisation_ratio})"
        paid.append(CostPart("hosting", hosting, rent))
    purchase = None
    if purchase_price_usd is not None:
        worked = HOURS_PER_YEAR * lifetime_years * utilisation_ratio
        hours = f"{lifetime_years} y x 8760 h x {utilisation_ratio}"
        formula = f"({purchase_price_usd} - {salvage_usd}) USD / ({hours})"
        purchase = CostPart("purchase", _rounded((purchase_price_usd - salvage_usd) / worked), formula)
    return OwnedCost(tuple(paid), purchase, cost_basis)


def _rounded(value: Decimal) -> Decimal:
    return value.quantize(_QUANTUM, rounding=ROUND_HALF_EVEN)
