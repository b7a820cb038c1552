"""One case of buying or renting in closed form: cash of any month, and NPV by annuities and geometric series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from planner.records import record

MONTH_HOURS = 8760.0 / 12.0


@record(frozen=True)
class Rented:
    """A way to rent: accelerators per instance, months of its term (0: by the hour), upfront per instance."""

    option: str
    per_instance: float
    term: int
    upfront: float
    spot: bool


@record(frozen=True)
class Case:
    """Values of all inputs, and what has no range; `share` is an accelerator's part of the machine's price."""

    values: Mapping[str, float]
    accelerators: int
    machines: int
    sites: tuple[str, ...]
    share: float
    warranty_years: float
    residual_after: float
    rents: tuple[Rented, ...]

    def at(self, key: str, value: float) -> Case:
        """The same with another value of one input."""
        return replace(self, values={**self.values, key: value})

    @property
    def months(self) -> int:
        """Of use."""
        return max(1, round(12 * self.values["years"]))

    @property
    def hours(self) -> float:
        """Useful accelerator-hours a month."""
        v = self.values
        up = max(0.0, 1.0 - v["failures_per_year"] * self.accelerators * v["repair_days"] / 365)
        return self.accelerators * self.machines * MONTH_HOURS * v["utilisation_ratio"] * up

    @property
    def factor(self) -> float:
        """What a dollar of the next month is worth."""
        return float((1 + self.values["capital_ratio"]) ** (-1 / 12))

    def annuity(self, months: int) -> float:
        """Worth of a dollar at the end of each of so many months."""
        return self.series(1.0, months)

    def series(self, growth: float, months: int) -> float:
        """Worth of payments at the ends of so many months that start at `growth` and grow by it."""
        ratio: float = self.factor * growth
        if abs(ratio - 1.0) < 1e-9:
            return float(months)  # within a billionth a month
        return float(ratio * (1 - ratio**months) / (1 - ratio))

    def npv(self, name: str) -> float:
        """Present cost of a way."""
        if name in self.sites:
            start, monthly, replaced, covered, resale = self._owning(name)
            later = self.annuity(self.months) - self.annuity(min(covered, self.months))
            return self.machines * (
                start
                + monthly * self.annuity(self.months)
                + replaced * later
                - resale * self.factor**self.months
            )
        rent = next(one for one in self.rents if one.option == name)
        growth = 1 + self.values["price_change_ratio"]
        if not rent.term:
            month = growth ** (1 / 12)
            return float(self._hourly(rent) * month**-0.5 * self.series(month, self.months))
        total, (monthly, upfront) = 0.0, self._committed(rent)
        for first in range(0, self.months, rent.term):
            long = min(rent.term, self.months - first)
            term = upfront * long / rent.term + monthly * self.annuity(long)
            total += term * growth ** (first / 12) * self.factor**first
        return total

    def cash(self, name: str) -> list[float]:
        """Paid at the start and at the end of every month."""
        months = range(1, self.months + 1)
        if name in self.sites:
            start, monthly, replaced, covered, resale = self._owning(name)
            paid = [start, *(monthly + replaced * (month > covered) for month in months)]
            paid[-1] -= resale
            return [self.machines * one for one in paid]
        rent = next(one for one in self.rents if one.option == name)
        growth = 1 + self.values["price_change_ratio"]
        if not rent.term:
            return [0.0, *(self._hourly(rent) * growth ** ((2 * month - 1) / 24) for month in months)]
        monthly, upfront = self._committed(rent)
        first = [(month - 1) // rent.term * rent.term for month in months]
        paid = [0.0, *(monthly * growth ** (begin / 12) for begin in first)]
        for begin in range(0, self.months, rent.term):
            paid[begin] += upfront * growth ** (begin / 12) * min(rent.term, self.months - begin) / rent.term
        return paid

    def per_hour(self, name: str) -> float:
        """Present cost over present useful hours."""
        return self.npv(name) / (self.hours * self.annuity(self.months))

    def _owning(self, site: str) -> tuple[float, float, float, int, float]:
        """Of one machine: at the start, a month, replaced a month and from when, resale."""
        v, price = self.values, self.values["hardware_usd"]
        busy = v["utilisation_ratio"]
        kwh = v["power_kw"] * MONTH_HOURS * (v["idle_ratio"] + (1 - v["idle_ratio"]) * busy)
        monthly = (
            kwh * v[f"{site}.pue"] * v[f"{site}.usd_per_kwh"] + v["power_kw"] * v[f"{site}.usd_per_kw_month"]
        )
        monthly += (
            v[f"{site}.hosting_usd_per_month"] + v[f"{site}.staff_fte"] * v[f"{site}.staff_usd_per_year"] / 12
        )
        monthly += v["maintenance_ratio"] * price / 12
        cards = self.accelerators * self.share * price
        resale = price * v["residual_ratio"] ** (v["years"] / self.residual_after)
        return (
            price + v["spares_ratio"] * cards, monthly, v["failures_per_year"] * cards / 12,
            round(12 * self.warranty_years), resale,
        )  # fmt: skip

    def _hourly(self, rent: Rented) -> float:
        """Dollars a month at the prices of the start."""
        v = self.values
        kept = 1 - v["lost_ratio"] if rent.spot else 1.0
        price = v[f"cloud.{rent.option}.usd_per_accelerator_hour"]
        return self.hours * price / v[f"cloud.{rent.option}.speed_ratio"] / kept

    def _committed(self, rent: Rented) -> tuple[float, float]:
        """Dollars a month, and upfront a term, of whole instances."""
        v = self.values
        wanted = self.accelerators * self.machines / v[f"cloud.{rent.option}.speed_ratio"] / rent.per_instance
        instances = ceil(wanted - 1e-9)
        price = v[f"cloud.{rent.option}.usd_per_accelerator_hour"] * rent.per_instance
        return instances * price * MONTH_HOURS, instances * rent.upfront
