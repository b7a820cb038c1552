"""Was anything unusual?"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from itertools import groupby
from typing import Any

import numpy as np

from planner.finops.anomalies import find_anomalies
from planner.finops.frames import records_of
from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Chart, Section, Table
from planner.finops.review.parts import figure, money, percent, product_name, run_regions, table, text
from planner.finops.review.sections.allocation import owner_names
from planner.records import record

TITLE = "Was anything unusual?"
TOP = 10
CAUSES = 5  # each asks the bill once more
WINDOW_DAYS = 28
# an excess below this share of an average day of the whole bill is no news, however unusual
MATERIAL_RATIO = 0.005


@record(frozen=True)
class Unusual:
    """Unusual days of a service that follow one another, and what they were.

    Attributes:
        day, days: the first one, and how many.
        cost, expected: of all of them, in the bill's currency.
        sku, region, account: what moved most on the dearest of them, product its name.
        team: that used most of it; empty where that use has no team.
        run: a tagged run that explains it.
    """

    day: date
    provider: str
    service: str
    cost: float
    expected: float
    days: int = 1
    peak: date | None = None
    sku: str = ""
    region: str = ""
    account: str = ""
    product: str = ""
    team: str = ""
    run: str = ""

    @property
    def excess(self) -> float:
        """Cost above what was expected."""
        return self.cost - self.expected


def unusual_days(inputs: Inputs) -> list[Unusual]:
    """Anomalies of the month by service, the dearest first; worked out once."""
    if "unusual" not in inputs.answers:
        found = [one for series in _services(inputs) for one in _of_service(inputs, *series)]
        found.sort(key=lambda one: (-one.excess, one.day, one.service))
        inputs.answers["unusual"] = [_with_cause(inputs, one) for one in found[:CAUSES]] + found[CAUSES:]
    out: list[Unusual] = inputs.answers["unusual"]
    return out


def _services(inputs: Inputs) -> list[tuple[str, str, Any, Any]]:
    """Provider, service, first day and daily cost of use; a day without a charge costs 0. Worked out once."""
    if "services" not in inputs.answers:
        use = inputs.daily[inputs.daily["charge_category"] == "Usage"]
        sums = use.groupby(["provider", "service", "day"], sort=True)["effective_cost"].sum()
        days = sums.index.get_level_values("day").to_numpy().astype("datetime64[D]")
        cost = sums.to_numpy(dtype=float)
        names = list(zip(*(sums.index.get_level_values(at).tolist() for at in (0, 1)), strict=True))
        inputs.answers["services"] = out = []
        for (provider, service), places in groupby(range(len(names)), key=names.__getitem__):
            own = np.fromiter(places, dtype=np.int64)
            since = (days[own] - days[own[0]]).astype(int)
            by_day = np.zeros(int(since[-1]) + 1)
            by_day[since] = cost[own]
            out.append((str(provider), str(service), days[own[0]], by_day))
    found: list[tuple[str, str, Any, Any]] = inputs.answers["services"]
    return found


def _of_service(inputs: Inputs, provider: str, service: str, first: Any, cost: Any) -> list[Unusual]:
    _, total = inputs.series()
    material = MATERIAL_RATIO * float(np.mean(total)) if len(total) else math.inf
    out: list[Unusual] = []
    for one in find_anomalies(cost):
        day = (first + one.index).item()
        if not (inputs.month <= day < inputs.end and one.excess >= material):
            continue
        last = out[-1] if out else None
        if last is not None and last.day + timedelta(days=last.days) == day:
            dearer = one.excess > last.excess / last.days
            out[-1] = Unusual(last.day, provider, service, last.cost + one.cost, last.expected + one.expected,
                              last.days + 1, day if dearer else last.peak)  # fmt: skip
        else:
            out.append(Unusual(day, provider, service, one.cost, one.expected, 1, day))
    return out


def _with_cause(inputs: Inputs, one: Unusual) -> Unusual:
    peak = one.peak or one.day
    start = peak - timedelta(days=WINDOW_DAYS)
    frame = inputs.ask(
        "anomaly_cause", day=peak, day_end=peak + timedelta(days=1), window_start=start, provider=one.provider,
        service=one.service,
    )  # fmt: skip
    if frame.empty:
        return one
    days = max(1, min(WINDOW_DAYS, (peak - min(inputs.use_days())).days))
    excess = frame["day_cost"].fillna(0.0) - frame["window_cost"].fillna(0.0) / days
    row = frame.loc[excess.idxmax()]
    sku, region, account, team = (text(row[name]) for name in ("sku_id", "region_id", "sub_account", "team"))
    product = product_name(row["product"], row["instance_type"], sku)
    return replace(
        one, sku=sku, product=product, region=region, account=account, team=owner_names(inputs).get(team, team),
        run=_run(inputs, one, peak, region),
    )  # fmt: skip


def _run(inputs: Inputs, one: Unusual, peak: date, region: str) -> str:
    """A tagged run of that day whose cost per day makes up at least half of the excess."""
    runs, day = inputs.runs(), np.datetime64(peak)
    start, end = (runs[name].to_numpy().astype("datetime64[D]") for name in ("first_start", "last_end"))
    per_day = runs["effective_cost"].to_numpy(dtype=float) / np.maximum(1, (end - start).astype(int))
    likely = (start <= day) & (day < end) & (per_day >= 0.5 * one.excess / one.days)
    own = runs[likely & (runs["provider"].fillna("") == one.provider).to_numpy(dtype=bool)]
    for run in records_of(own):
        if not region or region in run_regions(run):
            return str(run["run_id"])
    return ""


def build(inputs: Inputs) -> Section:
    """Unusual days with what they cost too much and the likely cause."""
    found = unusual_days(inputs)
    excess = math.fsum(one.excess for one in found)
    figures = (
        figure(inputs, "anomalies_count", "Unusual times of a service", len(found), "count"),
        figure(inputs, "anomalies_excess_money", "Cost above what was expected", excess, "money"),
    )
    if figures[0].status == "withheld":
        return Section("anomalies", TITLE, ("Unusual days are not looked for in such data.",), figures)
    days = (inputs.last_day - min(inputs.use_days())).days + 1 if inputs.use_days() else 0
    note = "" if days >= WINDOW_DAYS else "The bill has fewer than 28 days: unusual days may be missed."
    if not found:
        small = f"amounts below {percent(MATERIAL_RATIO)} of a day's cost are not listed"
        said = f"No service cost far more on a day than is usual for the weekday; {small}. {note}".strip()
        return Section("anomalies", TITLE, (said,), figures)
    top = found[0]
    cause = f", mostly {top.product} in {top.region or 'no region'}" if top.product else ""
    cause += f" by the run {top.run}" if top.run else ""
    times = "1 unusual time; it" if len(found) == 1 else f"{len(found)} unusual times; the most expensive"
    more = money(top.excess, inputs.bill.currency)
    said = (
        f"{times} began on {top.day:%-d %B}: {top.service} cost {more} more than the days around it{cause}. {note}"
    ).strip()
    return Section("anomalies", TITLE, (said,), figures, (_table(found),), (_chart(inputs, top),))


def _table(unusual_days: list[Unusual]) -> Table:
    rows = [
        (one.day.isoformat(), one.days, one.provider, one.service, one.cost, one.expected, one.excess, one.product,
         one.region, one.account, one.run, one.sku)
        for one in unusual_days[: 2 * TOP]
    ]  # fmt: skip
    return table(
        "anomalies", "Unusual times", [("day", "From", "date"), ("days", "Days", "count"),
        ("provider", "Provider", "text"), ("service", "Service", "text"), ("cost", "Cost", "money"),
        ("expected", "Expected", "money"), ("excess", "Excess", "money"), ("product", "Likely cause", "text"),
        ("region", "Region", "text"), ("account", "Account", "text"), ("run", "Run", "text"),
        ("sku", "SKU", "text", "data")], rows,
        "Expect about seven in ten days that cost half more than usual to be listed, and one or two ordinary days of "
        "each service in 100.",  # python -m benchmarks.anomalies: 72 %, 1.5
    )  # fmt: skip


def _chart(inputs: Inputs, top: Unusual) -> Chart:
    provider, service, first, cost = next(
        s for s in _services(inputs) if s[:2] == (top.provider, top.service)
    )
    place = int((np.datetime64(top.day) - first).astype(int))
    shown = range(max(0, place - 28), min(len(cost), place + 29))
    labels = tuple(str(first + i) for i in shown)
    return Chart("anomaly", f"{service} by day", "lines", labels,
                 ((f"{provider} {service}", tuple(float(cost[i]) for i in shown)),), "money",
                 f"{service} stands out from {top.day.isoformat()}.")  # fmt: skip
