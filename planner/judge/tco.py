"""The answer of `planner tco`: inputs read again, prices from the catalog, cash, NPV and break-evens in closed form.

Owning is a price, an annuity and a resale; renting by the hour is a geometric series; a commitment is one annuity a
term. The planner sums months instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from fnmatch import fnmatchcase
from itertools import accumulate, pairwise
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.partitions import asked_places, partition_of
from catalogs.tariffs import load_tariffs
from planner.inputs.tco_load import defaults
from planner.judge import frame
from planner.judge.findings import STATED, Findings, Near, NotRecomputed
from planner.judge.goods import Goods
from planner.judge.tco_case import Case, Rented
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.inputs.tco_load import LoadedTco
    from planner.inputs.tco_schema import Estimate, Tco
    from planner.judge.document import Node
    from planner.judge.goods import Offer

Ends = tuple[float, float, float]
_SITE_KEYS = (
    "usd_per_kwh",
    "pue",
    "hosting_usd_per_month",
    "usd_per_kw_month",
    "staff_fte",
    "staff_usd_per_year",
)
_PLANS = "it follows from the plans of a workload; `planner compare WORKLOAD --over option` shows them"
_LINE = 1e-6  # of a share at which a straight line crosses zero


@record(frozen=True)
class Input:
    """A factor as it must be; `why` it is not recomputed, where it is not."""

    ends: Ends
    origin: str
    why: str = ""


def check(findings: Findings, loaded: LoadedTco, catalog: Catalog) -> None:
    """Compare an answer with what is recomputed of its file and the catalog."""
    answer, tco = findings.answer, loaded.tco
    created = answer["created_at"].moment().date()
    start = tco.start or created
    file_inputs = dict(_inputs(tco))
    goods = Goods(
        catalog,
        None,
        load_tariffs(),
        Path(),
        created,
        start + timedelta(days=round(file_inputs["years"].ends[1] * 365 / 2)),
    )
    rents = [_rented(findings, node, tco, goods) for node in answer["fixed"]["rents"]]
    inputs = file_inputs | {key: item for _, _, items in rents for key, item in items.items()}
    for node in answer["factors"]:
        key = node["key"].text()
        if key in inputs and inputs[key].why:
            low, value, high = (node[name].number() for name in ("low", "value", "high"))
            inputs[key] = Input((low, value, high), "catalog", inputs[key].why)
    case = Case(
        {key: item.ends[1] for key, item in inputs.items()}, tco.machine.accelerators, tco.machine.machines,
        tuple(name for name, _ in _sites(tco)), _share(tco), float(tco.upkeep.warranty_years), _resale_years(tco),
        tuple(rented for rented, _, _ in rents),
    )  # fmt: skip
    bars_fall(findings)
    findings.expect(
        answer, _wanted(answer, loaded, catalog, start, inputs, case, [shown for _, shown, _ in rents])
    )


def _wanted(
    answer: Node, loaded: LoadedTco, catalog: Catalog, start: date, inputs: dict[str, Input], case: Case,
    rents: list[Any],
) -> dict[str, Any]:  # fmt: skip
    tco, v = loaded.tco, case.values
    own = min(case.sites, key=lambda name: (case.per_hour(name), name))
    rent = min((rented.option for rented in case.rents), key=lambda name: (case.per_hour(name), name))
    best = min((own, rent), key=lambda name: (case.per_hour(name), name))
    ends = {
        key: (case.at(key, item.ends[0]), case.at(key, item.ends[2]))
        for key, item in inputs.items()
        if item.ends[0] < item.ends[2]
    }
    return {
        "schema_version": 1, "planner_version": STATED, "kind": "tco", "currency": "USD", "name": tco.name,
        "sha256": loaded.sha256, "created_at": answer["created_at"].value, "start": start.isoformat(),
        "accelerator": tco.machine.accelerator, "catalog": frame.catalog_sources(catalog), "best": best, "own": own,
        "rent": rent, "factors": [_factor(key, item) for key, item in inputs.items()],
        "fixed": {
            "accelerators": tco.machine.accelerators, "machines": tco.machine.machines, "sites": list(case.sites),
            "accelerator_share": Near(case.share), "warranty_years": Near(case.warranty_years),
            "residual_after_years": Near(case.residual_after), "rents": rents,
        },
        "figures": {
            "months": case.months, "useful_hours_per_month": Near(case.hours),
            "discount": [Near(case.factor**month) for month in range(case.months + 1)],
            "own": [_way(case, name) for name in case.sites],
            "rent": [_way(case, rented.option) for rented in case.rents],
        },
        "spreads": [_spread(case, ends, name) for name in (*case.sites, *(rented.option for rented in case.rents))],
        "pairs": [_pair(case, site, rented.option) for site in case.sites for rented in case.rents],
        "bars": _bars(answer, case, ends, inputs, own, rent), "parts": _parts(tco), "quotes": STATED, "checks": STATED,
        "resales": STATED, "missing": STATED,
        "handover": {
            "text": STATED, "lacks": STATED, "full_usd_per_hour": Near(case.per_hour(own) * case.accelerators),
            "marginal_usd_per_hour": Near(v["power_kw"] * v[f"{own}.pue"] * v[f"{own}.usd_per_kwh"]),
        },
    }  # fmt: skip


def _factor(key: str, item: Input) -> dict[str, Any]:
    low, value, high = (NotRecomputed(item.why) if item.why else Near(end) for end in item.ends)
    return {
        "key": key, "low": low, "value": value, "high": high, "origin": item.origin,
        "words": STATED, "unit": STATED, "source": STATED, "as_of": STATED,
    }  # fmt: skip


def _way(case: Case, name: str) -> dict[str, Any]:
    cash = case.cash(name)
    return {
        "name": name, "cash_usd": [Near(paid, slack=1e-6) for paid in cash], "total_usd": Near(sum(cash), slack=1e-6),
        "npv_usd": Near(case.npv(name), slack=1e-6), "usd_per_useful_hour": Near(case.per_hour(name)),
    }  # fmt: skip


def _pair(case: Case, own: str, rent: str) -> dict[str, Any]:
    idle, full = (
        at.npv(own) - at.npv(rent)
        for at in (case.at("utilisation_ratio", 0.0), case.at("utilisation_ratio", 1.0))
    )
    holds = ("always" if full <= 0 else "up_to") if idle <= 0 else ("from" if full <= 0 else "never")
    ratio = Near(idle / (idle - full), 0.0, _LINE) if holds in ("from", "up_to") else None
    return {
        "own": own, "rent": rent, "saving_usd": Near(case.npv(rent) - case.npv(own), slack=1e-4),
        "break_even_month": _month(case, own, rent), "holds": holds, "break_even_utilisation_ratio": ratio,
    }  # fmt: skip


def _month(case: Case, own: str, rent: str) -> int | None:
    """First month by whose end all cash of owning is no more than all cash of renting."""
    paid = zip(accumulate(case.cash(own)), accumulate(case.cash(rent)), strict=True)
    return next((month for month, (bought, rented) in enumerate(paid) if bought <= rented), None)


def _spread(case: Case, ends: Mapping[str, tuple[Case, Case]], name: str) -> dict[str, Any]:
    base = case.per_hour(name)
    moved = [(low.per_hour(name) - base, high.per_hour(name) - base) for low, high in ends.values()]
    down, up = hypot(*(min(0.0, *both) for both in moved)), hypot(*(max(0.0, *both) for both in moved))
    return {
        "name": name, "low": Near(max(0.0, base - down), 1e-6), "value": Near(base), "high": Near(base + up, 1e-6),
    }  # fmt: skip


def _bars(
    answer: Node, case: Case, ends: Mapping[str, tuple[Case, Case]], inputs: Mapping[str, Input], site: str, rent: str
) -> list[dict[str, Any]]:  # fmt: skip
    """Bars in the answer's order, which must fall; a factor that moves the saving must have one."""
    base = case.per_hour(rent) - case.per_hour(site)
    moved = {
        key: [at.per_hour(rent) - at.per_hour(site) for at in both]
        for key, both in ends.items()
    }  # fmt: skip
    widths = {key: max(abs(value - base) for value in both) for key, both in moved.items()}
    keys = [node["key"].text() for node in answer["bars"]]
    still = {key for key, width in widths.items() if width <= 1e-9 * max(1.0, abs(base))}
    ordered = sorted(widths, key=lambda key: (keys.index(key) if key in keys else len(keys), key))
    out = []
    for key in (key for key in ordered if key in keys or key not in still):
        low, high = ends[key]
        sides = [
            {
                "value": Near(value), "saving_usd_per_useful_hour": Near(saving, slack=1e-7),
                "saving_usd": Near(at.npv(rent) - at.npv(site), slack=1e-3), "break_even_month": _month(at, site, rent),
            }
            for at, value, saving in zip((low, high), inputs[key].ends[::2], moved[key], strict=True)
        ]  # fmt: skip
        turns = any((value < 0) != (base < 0) for value in moved[key])
        out.append(
            {"key": key, "words": STATED, "unit": STATED, "low": sides[0], "high": sides[1], "turns": turns}
        )
    return out


def bars_fall(findings: Findings) -> None:
    """The widest bar comes first."""
    bars = list(findings.answer["bars"])
    reach = [[node[end]["saving_usd_per_useful_hour"].number() for end in ("low", "high")] for node in bars]
    centre = {node["name"].text(): node["value"].number() for node in findings.answer["spreads"]}
    base = centre[findings.answer["rent"].text()] - centre[findings.answer["own"].text()]
    widths = [max(abs(saving - base) for saving in both) for both in reach]
    falls = all(saving >= other - 1e-9 for saving, other in pairwise(widths))
    findings.require(falls, "bars", "not by the width of what they move")


def _inputs(tco: Tco) -> Iterator[tuple[str, Input]]:
    """Every factor of the file, its defaults filled in."""
    parts = [[part.count * end for end in _ends(part.usd)] for part in tco.machine.parts]
    low, value, high = (sum(column) for column in zip(*parts, strict=True))
    yield "hardware_usd", Input((low, value, high), "parts")
    if tco.machine.power_kw is None:
        watts = sum(p.count * (p.watts or 0.0) for p in tco.machine.parts if p.kind != "power_supply")
        yield "power_kw", Input((watts / 1000,) * 3, "parts")
    else:
        yield "power_kw", Input(_ends(tco.machine.power_kw), "given")
    life, up = tco.life, tco.upkeep
    for key, ends in (
        ("utilisation_ratio", tco.utilisation_ratio), ("years", life.years), ("residual_ratio", life.residual_ratio),
        ("capital_ratio", tco.capital_ratio), ("idle_ratio", tco.idle_ratio),
        ("maintenance_ratio", up.maintenance_ratio), ("failures_per_year", up.failures_per_year),
        ("repair_days", up.repair_days), ("spares_ratio", up.spares_ratio),
        ("price_change_ratio", tco.cloud.price_change_ratio), ("lost_ratio", tco.cloud.lost_ratio),
    ):  # fmt: skip
        yield key, _input(key, ends)
    for name, site in _sites(tco):
        for key in _SITE_KEYS:
            ends = getattr(site, key)
            if key == "usd_per_kw_month" and ends is None and name == "own_site":
                yield f"{name}.{key}", Input((0.0, 0.0, 0.0), "given")
            elif key == "staff_fte" and ends is None and tco.machine.accelerators < 8:  # published for eight
                low, value, high = (end * tco.machine.accelerators / 8 for end in _input(key, None).ends)
                yield f"{name}.{key}", Input((low, value, high), "default")
            else:
                yield f"{name}.{key}", _input(key, ends)


def _input(key: str, estimate: Estimate | None) -> Input:
    if estimate is not None:
        return Input(_ends(estimate), "given")
    row = defaults()[key]
    return Input((row.low, row.value, row.high), "assumed" if row.basis == "assumed" else "default")


def _ends(estimate: Estimate) -> Ends:
    value = estimate.value
    if value is None:
        assert estimate.low is not None and estimate.high is not None
        value = (estimate.low + estimate.high) / 2
    return (
        value if estimate.low is None else estimate.low,
        value,
        value if estimate.high is None else estimate.high,
    )


def _sites(tco: Tco) -> list[tuple[str, Any]]:
    return [
        (name, getattr(tco, name)) for name in ("own_site", "colocation") if getattr(tco, name) is not None
    ]


def _share(tco: Tco) -> float:
    """Price of one accelerator over that of the machine."""
    whole = sum(part.count * _ends(part.usd)[1] for part in tco.machine.parts)
    if tco.machine.accelerator_usd is not None:
        return _ends(tco.machine.accelerator_usd)[1] / whole
    cards = [part for part in tco.machine.parts if part.kind == "accelerator"]
    price = sum(part.count * _ends(part.usd)[1] for part in cards) if cards else whole
    return price / tco.machine.accelerators / whole


def _resale_years(tco: Tco) -> float:
    if tco.life.residual_after_years is not None:
        return float(tco.life.residual_after_years)
    return 3.0 if tco.life.residual_ratio is None else _input("years", tco.life.years).ends[1]


def _rented(findings: Findings, node: Node, tco: Tco, goods: Goods) -> tuple[Rented, Any, dict[str, Input]]:
    """A way to rent: what the arithmetic needs, what the answer must say of it, and its two factors."""
    option = node["option"].text()
    keys = (f"cloud.{option}.usd_per_accelerator_hour", f"cloud.{option}.speed_ratio")
    years = int(option[-2]) if option.endswith(("_1y", "_3y")) else 0
    if option not in tco.cloud.options:
        node["option"].fail(f"an option of the question: {', '.join(tco.cloud.options)}")
    if tco.cloud.workload is not None:
        catalog_plan = Input((0.0, 0.0, 0.0), "catalog", _PLANS)
        speed = Input((1.0, 1.0, 1.0), "definition")
        return Rented(option, node["accelerators"].number(), 0, 0.0, False), NotRecomputed(_PLANS), dict(
            zip(keys, (catalog_plan, speed), strict=True)
        )  # fmt: skip
    offer = goods.offer(node["offer_id"].path, node["offer_id"].text())
    rate = float(offer.rate.rate)
    price, count = float(offer.price) * rate / offer.accelerators, offer.accelerators
    expected = offer.quote.expected
    upfront = float(offer.upfront) * rate if years else 0.0
    accelerator = str(offer.kind["accelerator"])
    findings.require(_fits(tco, offer, accelerator, option), node.path, "no offer that the file asks for")
    shown = {
        "option": option, "variant": offer.text("option_variant"), "offer_id": STATED, "accelerator": accelerator,
        "accelerators": Near(count), "term_months": 12 * years, "upfront_usd": Near(upfront, slack=1e-6),
        "basis": offer.quote.kind, "spot": option == "spot",
        "source": offer.text("source"), "as_of": offer.text("as_of"),
    }  # fmt: skip
    ranged = Input((price * offer.quote.p10 / expected, price, price * offer.quote.p90 / expected), "catalog")
    return Rented(option, count, 12 * years, upfront, option == "spot"), shown, {
        keys[0]: ranged, keys[1]: _speed(tco, accelerator)
    }  # fmt: skip


def _fits(tco: Tco, offer: Offer, accelerator: str, option: str) -> bool:
    cloud, place = tco.cloud, "/".join(offer.place)
    return (
        fnmatchcase(accelerator, cloud.accelerator or tco.machine.accelerator)
        and offer.text("purchase_option") == option
        and offer.accelerators >= 1
        and (not cloud.providers or offer.place[0] in cloud.providers)
        and (not cloud.regions or any(fnmatchcase(place, glob) for glob in cloud.regions))
        and (partition_of(place) is None or bool(asked_places([place], cloud.regions, ())))
        and (not cloud.instance_types or any(fnmatchcase(offer.text("instance_type"), g) for g in cloud.instance_types))
    )  # fmt: skip


def _speed(tco: Tco, accelerator: str) -> Input:
    if tco.cloud.speed_ratio is not None:
        return Input(_ends(tco.cloud.speed_ratio), "given")
    if accelerator == tco.machine.accelerator:
        return Input((1.0, 1.0, 1.0), "definition")
    ratio = _peak(accelerator) / _peak(tco.machine.accelerator)
    return Input((ratio, ratio, ratio), "assumed")


def _peak(accelerator: str) -> float:
    table = load_accelerators()
    row = table["accelerator"].tolist().index(accelerator)
    bf16, fp16 = (float(table.number(name)[row]) for name in ("bf16_tflops", "fp16_tflops"))
    return bf16 if bf16 > 0 else fp16


def _parts(tco: Tco) -> list[dict[str, Any]]:
    out = []
    for part in tco.machine.parts:
        low, value, high = _ends(part.usd)
        out.append({
            "name": part.name, "kind": part.kind, "count": part.count, "low_usd": Near(low), "usd": Near(value),
            "high_usd": Near(high), "source": part.usd.source or "", "as_of": part.usd.as_of or "", "note": STATED,
        })  # fmt: skip
    return out
