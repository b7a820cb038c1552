"""From a file to factors: what it gives, what is assumed where it says nothing, and sums over the parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.inputs.faults import Fault
from planner.inputs.tco_load import LoadedTco, defaults, hardware_prices
from planner.owning.model import COLOCATION, OWN_SITE, SITE_KEYS, Factor, PartLine, Quote, Resale

if TYPE_CHECKING:
    from planner.inputs.tco_schema import Estimate, Part, Site, Tco

_NO_RENT = Factor("usd_per_kw_month", "rent per kW", 0.0, 0.0, 0.0, "USD/kW-month", "given")
_PLACES = {OWN_SITE: "own rooms", COLOCATION: "colocation"}
_APART = 1.25  # a published range that lies further from a part's own disagrees with it


def ends(estimate: Estimate) -> tuple[float, float, float]:
    """Low, value and high of an estimate; what is not given follows from the others."""
    low, value, high = estimate.low, estimate.value, estimate.high
    if value is None:
        assert low is not None and high is not None  # the reader refused anything else
        value = (low + high) / 2.0
    return value if low is None else low, value, value if high is None else high


def factor(key: str, estimate: Estimate | None, *, words: str = "", unit: str = "") -> Factor:
    """The factor of a key: as given, else as assumed; `site.key` takes words and defaults from `key`."""
    default = defaults().get(key.rpartition(".")[2])
    words = words or (default.words if default else key)
    unit = unit or (default.unit if default else "")
    if estimate is not None:
        return Factor(key, words, *ends(estimate), unit, "given", estimate.source or "", estimate.as_of or "")
    assert default is not None  # a key without a default is asked for
    origin = "assumed" if default.basis == "assumed" else "default"
    ends_of = (default.low, default.value, default.high)
    return Factor(key, words, *ends_of, unit, origin, default.source, default.as_of)


def machine_factors(loaded: LoadedTco) -> list[Factor]:
    """Factors of the machine, its upkeep, its life and the money in it.

    Raises:
        InputError: the machine costs nothing.
    """
    tco = loaded.tco
    price = hardware(tco)
    if price.value <= 0.0:
        raise loaded.document.source.error([Fault(("machine", "parts"), "the parts cost nothing")])
    up, life = tco.upkeep, tco.life
    return [
        price,
        power(tco),
        factor("utilisation_ratio", tco.utilisation_ratio),
        factor("years", life.years),
        factor(
            "residual_ratio",
            life.residual_ratio,
            words=f"resale over price after {residual_years(tco):g} years",
        ),
        factor("capital_ratio", tco.capital_ratio),
        factor("idle_ratio", tco.idle_ratio),
        factor("maintenance_ratio", up.maintenance_ratio),
        factor("failures_per_year", up.failures_per_year),
        factor("repair_days", up.repair_days),
        factor("spares_ratio", up.spares_ratio),
        factor("price_change_ratio", tco.cloud.price_change_ratio),
        factor("lost_ratio", tco.cloud.lost_ratio),
    ]


def residual_years(tco: Tco) -> float:
    """After how many years the resale value was seen; that of the default is 3 years."""
    if tco.life.residual_after_years is not None:
        return float(tco.life.residual_after_years)
    if tco.life.residual_ratio is None:
        return 3.0
    return factor("years", tco.life.years).value


def hardware(tco: Tco) -> Factor:
    """Price of one machine: the sum of its parts, low ends and high ends apart."""
    lines = part_lines(tco)
    low, value, high = (
        sum(line.count * usd for line, usd in zip(lines, column, strict=True))
        for column in zip(*((line.low_usd, line.usd, line.high_usd) for line in lines), strict=True)
    )
    dated = sorted({line.as_of for line in lines if line.as_of})
    sources = list(dict.fromkeys(line.source for line in lines if line.source))
    text = f"{len(lines)} parts" + (f": {'; '.join(sources)}" if sources else "")
    return Factor(
        "hardware_usd", "price of one machine", low, value, high, "USD", "parts", text, "/".join(dated)
    )


def power(tco: Tco) -> Factor:
    """Draw of one machine at full load in kW."""
    if tco.machine.power_kw is not None:
        return factor("power_kw", tco.machine.power_kw, words="power at full load", unit="kW")
    watts = load_watts(tco)
    return Factor(
        "power_kw", "power at full load", *(watts / 1000.0,) * 3, "kW", "parts", "watts of the parts"
    )


def load_watts(tco: Tco) -> float:
    """Sum of what the parts draw; power supplies give."""
    return sum((p.watts or 0.0) * p.count for p in tco.machine.parts if p.kind != "power_supply")


_STAFFED = 8  # accelerators of the machine that the default of staff is of


def site_factors(tco: Tco) -> list[Factor]:
    """Factors of every place where the machine may stand."""
    out = []
    for name, site in sites(tco):
        for key in SITE_KEYS:
            stated, full_key = getattr(site, key), f"{name}.{key}"
            if key == "usd_per_kw_month" and stated is None and name == OWN_SITE:
                out.append(Factor(full_key, _NO_RENT.words, 0.0, 0.0, 0.0, _NO_RENT.unit, "given"))
                continue
            found = factor(full_key, stated)
            if key == "staff_fte" and stated is None:
                found = _staff(found, tco.machine.accelerators)
            out.append(replace(found, words=f"{found.words} ({_PLACES[name]})"))
    return out


def _staff(default: Factor, accelerators: int) -> Factor:
    """The default of staff for one machine: it is published for one with 8 accelerators, smaller ones need less."""
    share = min(accelerators / _STAFFED, 1.0)
    if share == 1.0:
        return default
    low, value, high = (share * end for end in (default.low, default.value, default.high))
    return replace(
        default, low=low, value=value, high=high, source=f"{default.source}; by the accelerators of a machine"
    )


def sites(tco: Tco) -> list[tuple[str, Site]]:
    """Places by name, own rooms first."""
    places = [(OWN_SITE, tco.own_site), (COLOCATION, tco.colocation)]
    return [(name, site) for name, site in places if site is not None]


def accelerator_share(tco: Tco) -> float:
    """Price of one accelerator over that of the machine."""
    whole = hardware(tco).value
    if tco.machine.accelerator_usd is not None:
        return ends(tco.machine.accelerator_usd)[1] / whole
    priced = [(p.count, ends(p.usd)[1]) for p in tco.machine.parts if p.kind == "accelerator"]
    if priced:
        return sum(count * usd for count, usd in priced) / tco.machine.accelerators / whole
    return 1.0 / tco.machine.accelerators


def part_lines(tco: Tco) -> tuple[PartLine, ...]:
    """The bill of materials of one machine."""
    return tuple(
        PartLine(p.name, p.kind, p.count, *ends(p.usd), p.usd.source or "", p.usd.as_of or "", _note(p))
        for p in tco.machine.parts
    )


def _note(part: Part) -> str:
    return "; ".join(text for text in (part.usd.note, part.note) if text)


def quotes(tco: Tco) -> tuple[Quote, ...]:
    """Published prices beside those of the parts; a range that lies a quarter or more away disagrees."""
    out = []
    for part in tco.machine.parts:
        low, value, high = ends(part.usd)
        for row in (row for item in part.market for row in hardware_prices() if row.item == item):
            apart = row.low > high * _APART or row.high * _APART < low
            ratios = (row.low / value, row.high / value) if value else (0.0, 0.0)
            price = (row.item, row.condition, row.low, row.high)
            out.append(Quote(part.name, *price, *ratios, apart, row.source, row.as_of))
    return tuple(out)


def resales() -> tuple[Resale, ...]:
    """What earlier generations were worth, with what they kept each year: oldest cards last."""
    out = []
    for row in hardware_prices():
        years = row.after_years
        if years is None:
            continue
        yearly = (row.low ** (1.0 / years), row.high ** (1.0 / years))
        out.append(Resale(row.item, years, row.low, row.high, *yearly, row.source, row.as_of))
    return tuple(sorted(out, key=lambda one: (one.years, one.item)))
