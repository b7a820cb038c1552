"""The arithmetic of one case: cash by month of owning and of renting, NPV, cost per useful hour, break-evens.

    months N = 12 x years        useful hours/month h = accelerators x 730 x utilisation x (1 - downtime)
    downtime = failures/year x accelerators per machine x repair days / 365
    own, month 0    price x machines x (1 + spares x share of the accelerators in the price)
    own, month m    kW x (u + idle (1 - u)) x 730 x PUE x USD/kWh + kW x rent + hosting + staff + support
                    + replaced accelerators after the warranty;  month N less the resale
    resale          price x residual ^ (years / years after which it was seen)
    rent by hour    h / speed x price x (1 + change) ^ ((m - 1/2) / 12) / (1 - lost)      (lost: spot alone)
    committed       ceil(accelerators / speed / per instance) instances, every hour, at the price of the term's start
    NPV             sum of cash x (1 + capital) ^ (-m / 12)
    per useful hour NPV / sum of h x (1 + capital) ^ (-m / 12)

Money is in US dollars, hours of all machines together; resale is a negative payment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from planner.owning.model import Figures, Fixed, Pair, Rent, Way

HOURS_PER_MONTH, MONTHS_PER_YEAR, DAYS_PER_YEAR = 730.0, 12, 365.0
Values = Mapping[str, float]
WHOLE = 1e-9  # of a count of instances that rounding makes a little too large


def figures_of(values: Values, fixed: Fixed) -> Figures:
    """Work out one case.

    Args:
        values: of every factor, by its key.
        fixed: what has no range.
    """
    months = max(1, round(values["years"] * MONTHS_PER_YEAR))
    hours = useful_hours_per_month(values, fixed)
    discount = tuple(
        (1.0 + values["capital_ratio"]) ** (-month / MONTHS_PER_YEAR) for month in range(months + 1)
    )
    discounted = hours * math.fsum(discount[1:])
    owning = tuple(
        _way(site, owning_cash(site, values, fixed, months), discount, discounted) for site in fixed.sites
    )
    rent = tuple(
        _way(rented.option, renting_cash(rented, values, fixed, months), discount, discounted)
        for rented in fixed.rents
    )
    return Figures(months, hours, discount, owning, rent)


def useful_hours_per_month(values: Values, fixed: Fixed) -> float:
    """Accelerator-hours of useful work in a month; a failed accelerator stops its machine until it is replaced."""
    down = values["failures_per_year"] * fixed.accelerators * values["repair_days"] / DAYS_PER_YEAR
    return fixed.all_accelerators * HOURS_PER_MONTH * values["utilisation_ratio"] * (1.0 - min(down, 1.0))


def owning_cash(site: str, values: Values, fixed: Fixed, months: int) -> list[float]:
    """USD paid at the start and at the end of each month for all machines at a site; resale is negative."""
    return [math.fsum(paid) for paid in zip(*owning_parts(site, values, fixed, months).values(), strict=True)]


def owning_parts(site: str, values: Values, fixed: Fixed, months: int) -> dict[str, list[float]]:
    """USD as of `owning_cash`, by what it is for: the machine less its resale, power, staff, rooms, upkeep."""
    price = values["hardware_usd"]
    busy, idle = values["utilisation_ratio"], values["idle_ratio"]
    kw, of = (
        values["power_kw"],
        {key.partition(".")[2]: v for key, v in values.items() if key.startswith(site)},
    )
    energy = kw * (busy + idle * (1.0 - busy)) * HOURS_PER_MONTH * of["pue"] * of["usd_per_kwh"]
    each = price * fixed.accelerator_share
    support = price * values["maintenance_ratio"] / MONTHS_PER_YEAR
    replaced = values["failures_per_year"] * fixed.accelerators * each / MONTHS_PER_YEAR
    covered = round(fixed.warranty_years * MONTHS_PER_YEAR)
    by_month = {
        "power": energy,
        "staff": of["staff_fte"] * of["staff_usd_per_year"] / MONTHS_PER_YEAR,
        "rooms": kw * of["usd_per_kw_month"] + of["hosting_usd_per_month"],
    }
    parts = {name: [0.0, *([usd] * months)] for name, usd in by_month.items()}
    parts["upkeep"] = [
        values["spares_ratio"] * fixed.accelerators * each,
        *(support + (replaced if month > covered else 0.0) for month in range(1, months + 1)),
    ]
    parts["machine"] = [price, *([0.0] * months)]
    parts["machine"][-1] -= price * values["residual_ratio"] ** (values["years"] / fixed.residual_after_years)
    return {name: [fixed.machines * usd for usd in cash] for name, cash in parts.items()}


def renting_cash(rent: Rent, values: Values, fixed: Fixed, months: int) -> list[float]:
    """USD paid at the start and at the end of each month for the same useful hours in the cloud."""
    price, change = values[rent.price_key], 1.0 + values["price_change_ratio"]
    speed = values[rent.speed_key]
    if not rent.term_months:
        hours = useful_hours_per_month(values, fixed) / speed
        lost = values["lost_ratio"] if rent.spot else 0.0
        by_month = [change ** ((month - 0.5) / MONTHS_PER_YEAR) for month in range(1, months + 1)]
        return [0.0, *(hours * price / (1.0 - lost) * factor for factor in by_month)]
    instances = math.ceil(fixed.all_accelerators / speed / rent.accelerators - WHOLE)
    monthly = instances * rent.accelerators * HOURS_PER_MONTH * price
    cash = [0.0] * (months + 1)
    for start in range(0, months, rent.term_months):
        end, level = min(start + rent.term_months, months), change ** (start / MONTHS_PER_YEAR)
        cash[start] += instances * rent.upfront_usd * level * (end - start) / rent.term_months
        for month in range(start + 1, end + 1):
            cash[month] += monthly * level
    return cash


def pairs_of(values: Values, fixed: Fixed, figures: Figures) -> tuple[Pair, ...]:
    """Every site against every way to rent."""
    idle, full = (figures_of({**values, "utilisation_ratio": at}, fixed) for at in (1e-9, 1.0))
    out = []
    for owning, own_idle, own_full in zip(figures.own, idle.own, full.own, strict=True):
        for rent, rent_idle, rent_full in zip(figures.rent, idle.rent, full.rent, strict=True):
            holds, ratio = _holds(own_idle.npv_usd - rent_idle.npv_usd, own_full.npv_usd - rent_full.npv_usd)
            month = break_even_month(owning.cash_usd, rent.cash_usd)
            saving = rent.npv_usd - owning.npv_usd
            out.append(Pair(owning.name, rent.name, saving, month, holds, ratio))
    return tuple(out)


def break_even_month(own: Sequence[float], rent: Sequence[float]) -> int | None:
    """First month by whose end all that was paid for owning is no more than for renting; None: not within the life."""
    ahead = 0.0
    for month, (paid, saved) in enumerate(zip(own, rent, strict=True)):
        ahead += saved - paid
        if ahead >= 0.0:
            return month
    return None


def _holds(idle: float, full: float) -> tuple[str, float | None]:
    """From which utilisation on owning costs less: what it costs more at none and at full use is a straight line."""
    if idle <= 0.0 and full <= 0.0:
        return "always", None
    if idle > 0.0 and full > 0.0:
        return "never", None
    return ("from" if idle > 0.0 else "up_to"), idle / (idle - full)


def _way(name: str, cash: Sequence[float], discount: Sequence[float], hours: float) -> Way:
    npv = math.fsum(paid * factor for paid, factor in zip(cash, discount, strict=True))
    return Way(name, tuple(cash), math.fsum(cash), npv, npv / hours)
