"""What was saved against the price list, and do commitments pay?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.finops.counted_twice import quality_checks
from planner.finops.frames import rows_of
from planner.finops.provider_days import UNNAMED
from planner.finops.review.inputs import EXPIRY_DAYS, Inputs
from planner.finops.review.model import Chart, Figure, Section, Table
from planner.finops.review.parts import figure, flagged, money, percent, ratio, table, text
from planner.finops.review.sections.turned_commitments import ended_words, expiries, last_day_of
from planner.records import record

if TYPE_CHECKING:
    import pandas as pd

TITLE = "What was saved, and do commitments pay?"
TOP = 30
_CHARTED = 8
_UNPRICED = 0.05  # share of covered use without any price from which on coverage and saving are unknown
_ONE_SIDED = 0.001  # share of use cost from which on unused commitments without a price of their use are told
_NOT_OF_COMMITMENTS = {"price_list_known_ratio", "price_contract_known_ratio", "savings_negotiated_money"}
_HALF = "count as a cost, but what their use saved has no price"
_ALIKE = "as much as at"
_NO_USE = "the month has no use with such a price"


@record(frozen=True)
class Savings:
    """Sums of the KPI `savings_rate` over one month, in the bill's currency."""

    list_cost: float
    effective_with_list: float
    contracted: float
    effective_with_contracted: float
    both_list: float
    both_contracted: float
    both_effective: float

    @property
    def identity_gap(self) -> float:
        """(list - effective) - (list - contracted) - (contracted - effective): 0 but for rounding."""
        negotiated, rest = self.both_list - self.both_contracted, self.both_contracted - self.both_effective
        return (self.both_list - self.both_effective) - negotiated - rest


def savings(inputs: Inputs) -> Savings:
    """The month's sums."""
    own = inputs.of_this_month("savings_rate")
    names = (
        "list_cost", "effective_cost_with_list", "contracted_cost", "effective_cost_with_contracted", "both_list_cost",
        "both_contracted_cost", "both_effective_cost",
    )  # fmt: skip
    return Savings(*(float(own[name].sum()) for name in names))


def build(inputs: Inputs) -> Section:
    """Savings rates, utilisation, coverage, waste and what ends soon."""
    own = inputs.of_month(inputs.ask("commitment_utilisation"))
    used, unused = float(own["used_cost"].sum()), float(own["unused_cost"].sum())
    ends = expiries(inputs)
    soon_count = sum(1 for one in ends if last_day_of(one) >= inputs.last_day)
    figures = [
        *_savings(inputs, _unused_of_unpriced(own)),
        *_commitments(inputs, used, unused, len(own)),
        _coverage(inputs),
    ]
    has_contracts = "ContractCommitment" in {source.dataset for source in inputs.bill.sources}
    soon = figure(inputs, "commitments_ending_count", f"Commitments that end within {EXPIRY_DAYS} days", soon_count,
                  "count")  # fmt: skip
    figures.append(
        soon
        if has_contracts
        else flagged(
            soon, "without the ContractCommitment dataset only ends of commitments paid at once are known"
        )
    )
    told_use = used + unused > 0 and inputs.gate.status("commitment_utilisation_ratio")[0] != "withheld"
    tables = [*([_table(own, told_use)] if len(own) else []), _providers(inputs)]
    if ends:
        tables.append(_ending(ends))
    sentences = (*_sentences(inputs, figures, unused, len(own)), *filter(None, (ended_words(inputs),)))
    charts = (_chart(own),) if told_use else ()
    return Section("commitments", TITLE, sentences, tuple(figures), tuple(tables), charts)


def _unused_of_unpriced(own: pd.DataFrame) -> float:
    """What was not used of commitments whose use has no price: it is a cost, and what it is for is no saving."""
    unpriced = own["used_unpriced_cost"] > _UNPRICED * own["used_cost"]
    return float(own.loc[unpriced, "unused_cost"].sum())


def _savings(inputs: Inputs, one_sided: float) -> list[Figure]:
    s = savings(inputs)
    known = {
        check.key: check.value for check in inputs.gate.checks
    }  # the same share as the gate's, said once

    def made(key: str, label: str, value: float | None, unit: Any = "money") -> Figure:
        one = figure(inputs, key, label, value, unit, lacking=_NO_USE)
        if one_sided <= _ONE_SIDED * abs(s.effective_with_contracted) or key in _NOT_OF_COMMITMENTS:
            return one
        lost = money(one_sided, inputs.bill.currency)
        return flagged(one, f"{lost} of unused commitments {_HALF}")

    return [
        made("esr_list_ratio", "Effective savings rate against list", 1 - ratio(s.effective_with_list, s.list_cost),
             "ratio"),
        made("esr_contract_ratio", "Effective savings rate against contract",
             1 - ratio(s.effective_with_contracted, s.contracted), "ratio"),
        made("price_list_known_ratio", "Use cost with a known list price", known["list_known"], "ratio"),
        made("price_contract_known_ratio", "Use cost with a known contracted price", known["contracted_known"],
             "ratio"),
        made("savings_total_money", "Saved against list", s.both_list - s.both_effective),
        made("savings_negotiated_money", "of it negotiated", s.both_list - s.both_contracted),
        made("savings_commitment_money", "of it commitments and spot", s.both_contracted - s.both_effective),
        replace(made("savings_identity_money", "Saved beyond these two parts", s.identity_gap), checked=True),
    ]  # fmt: skip


def _commitments(inputs: Inputs, used: float, unused: float, count: int) -> list[Figure]:
    lacking = "no charge of the month says what the used or unused part of a commitment costs"
    waste = (
        math.nan if count and not used + unused else unused
    )  # 0 of commitments that nobody tells of is no figure
    return [
        figure(inputs, "commitment_utilisation_ratio", "Commitment utilisation", ratio(used, used + unused), "ratio",
               lacking=lacking),
        figure(inputs, "commitment_waste_money", "Unused commitments", waste, "money", lacking=lacking),
    ]  # fmt: skip


def _coverage(inputs: Inputs) -> Figure:
    own = inputs.of_this_month("commitment_coverage")
    covered = float(own["covered_list_cost"].sum())
    unpriced = ratio(
        float(own["covered_unpriced_effective_cost"].sum()), float(own["covered_effective_cost"].sum())
    )
    # A provider whose rows say what is eligible is believed; another's compute is used for it.
    tells = own["eligible_rows"] > 0
    open_cost = float(
        own["eligible_uncovered_list_cost"].where(tells, own["compute_uncovered_list_cost"]).sum()
    )
    lacking = "the month has no use that a commitment could cover"
    rate = ratio(covered, covered + open_cost)
    if unpriced > _UNPRICED:
        rate, lacking = (
            math.nan,
            f"{percent(unpriced)} of covered use has neither a list nor a contracted price",
        )
    coverage = figure(
        inputs, "commitment_coverage_ratio", "Commitment coverage", rate, "ratio", lacking=lacking
    )
    guessed = own[~tells & (own["compute_uncovered_list_cost"] + own["covered_list_cost"] > 0)]
    if guessed.empty:
        return coverage
    names = ", ".join(sorted(text(p, "(unnamed)") for p in guessed["provider"]))
    return flagged(
        coverage,
        f"charges of {names} do not say what is eligible (FOCUS 1.4); all compute is counted as such",
    )


def net_saving(row: Any) -> float:
    """The use of a commitment at contracted prices less all of its cost; NaN where the bill has no such prices.

    Args:
        row: of the KPI `commitment_utilisation`.
    """
    if row["used_unpriced_cost"] > _UNPRICED * row["used_cost"]:
        return math.nan
    return float(row["used_contracted_cost"] - row["used_cost"] - row["unused_cost"])


def _table(own: Any, told_use: bool) -> Table:
    """What each commitment did; only their names where the bill does not say."""
    shown = _most_unused(own).head(TOP)
    net = shown.apply(net_saving, axis=1).tolist() if told_use else [None] * len(shown)
    rows = [
        (text(r.commitment_name, r.commitment_id), r.provider, text(r.commitment_id), text(r.commitment_type),
         *((float(r.used_cost), float(r.unused_cost), ratio(r.used_cost, r.used_cost + r.unused_cost))
           if told_use else (None,) * 3), saving)
        for r, saving in zip(rows_of(shown), net, strict=True)
    ]  # fmt: skip
    return table(
        "commitments", "Commitments", [("name", "Commitment", "text"), ("provider", "Provider", "text"),
        ("id", "Id", "text"), ("type", "Type", "text"), ("used", "Used", "money"), ("unused", "Unused", "money"),
        ("utilisation", "Utilisation", "ratio"), ("net", "Net saving", "money")], rows,
        "Net saving: the use at contracted prices less the whole commitment; below 0 it costs more than it saves."
        + (" Empty where the bill has no contracted prices of the use." if any(map(_is_nan, net)) else "")
        + (f" {len(own) - TOP:,} commitments with less unused are not listed." if len(own) > TOP else ""),
    )  # fmt: skip


def _is_nan(value: float | None) -> bool:
    return value is not None and math.isnan(value)


def _providers(inputs: Inputs) -> Table:
    sums = inputs.of_this_month("savings_rate").groupby("provider", dropna=False).sum(numeric_only=True)
    own = sums.reset_index()
    unread = inputs.gate.status("spend_money")[0] == "withheld"
    rows = [
        (text(r.provider, UNNAMED), None if unread else float(r.effective_cost),
         _saved(inputs, "list", r.effective_cost_with_list, r.list_cost, ratio(r.list_known_weight, r.use_weight)),
         _saved(inputs, "contract", r.effective_cost_with_contracted, r.contracted_cost,
                ratio(r.contracted_known_weight, r.use_weight)),
         ratio(r.list_known_weight, r.use_weight))
        for r in rows_of(own.sort_values("effective_cost", ascending=False, kind="stable"))
    ]  # fmt: skip
    least = percent(_least_known("list"), 0)
    return table(
        "savings", "Savings by provider", [("provider", "Provider", "text"), ("cost", "Cost", "money"),
        ("esr_list", "Against list", "ratio"), ("esr_contract", "Against contract", "ratio"),
        ("known", "List price known", "ratio")], rows,
        f"Empty where savings are withheld, or prices are known of less than {least} of a provider's use cost." * any(
            row[2] is None or row[3] is None for row in rows),
    )  # fmt: skip


def _saved(inputs: Inputs, price: str, cost: float, priced: float, known: float) -> float | None:
    """A provider's savings rate; None where the figure is withheld, or would be of a bill of this provider alone."""
    hidden = inputs.gate.status(f"esr_{price}_ratio")[0] == "withheld" or known < _least_known(price)
    return None if hidden else 1 - ratio(cost, priced)


def _least_known(price: str) -> float:
    """Share of use cost with a known price below which the gate withholds what was saved."""
    check = {"list": "list_known", "contract": "contracted_known"}[price]
    return float(next(one["withhold_at"] for one in quality_checks() if one["check"] == check))


def _ending(ends: list[dict[str, Any]]) -> Table:
    rows = [
        (text(r["commitment_name"], r["commitment_id"]), text(r["commitment_id"]), text(r["commitment_type"]),
         str(r["period_start"])[:10],
         str(r["period_end"])[:10], r["commitment_cost"])
        for r in ends[:TOP]
    ]  # fmt: skip
    return table(
        "commitments_ending", "Ended in the month or ending soon",
        [("name", "Commitment", "text"), ("id", "Id", "text"), ("type", "Type", "text"),
        ("start", "Start", "date"), ("end", "End", "date"),
        ("cost", "Cost of the whole term", "money")], rows,
    )  # fmt: skip


def _most_unused(own: Any) -> Any:
    """The order of the table and of the chart."""
    return own.sort_values(["unused_cost", "commitment_id"], ascending=[False, True])


def _chart(own: Any) -> Chart:
    rows = _most_unused(own).head(_CHARTED)
    names = [text(n, i) for n, i in zip(rows["commitment_name"], rows["commitment_id"], strict=True)]
    labels = tuple(
        f"{name} ({text(i)})" if names.count(name) > 1 else name
        for name, i in zip(names, rows["commitment_id"], strict=True)
    )
    used, unused = (tuple(float(v) for v in rows[name]) for name in ("used_cost", "unused_cost"))
    share = percent(ratio(sum(used), sum(used) + sum(unused))) if sum(used) + sum(unused) else "nothing"
    those = "the commitment" if len(rows) == 1 else f"the {len(rows)} commitments with most unused"
    return Chart("commitments", "Used and unused commitments", "bars", labels, (("used", used), ("unused", unused)),
                 "money", f"Of {those} {share} was used.", drawn_only=True)  # fmt: skip


def _beside(rate: float, saved: str, paid: str) -> str:
    """`11.4 % below`, where a savings rate lies beside prices."""
    if percent(abs(rate)) == percent(0.0):
        return _ALIKE
    return f"{percent(abs(rate))} {saved if rate > 0 else paid}"


def _sentences(inputs: Inputs, figures: list[Figure], unused: float, count: int) -> tuple[str, ...]:
    found = {f.key: f for f in figures}
    out = []
    rate, contract = found["esr_list_ratio"].value, found["esr_contract_ratio"].value
    if isinstance(rate, float):
        sides = [f"{_beside(rate, 'less than at', 'more than at')} list"]
        if isinstance(contract, float):
            sides.append(f"{_beside(contract, 'below', 'above')} contracted")
        said = " prices and ".join(sides).replace(f"{_ALIKE} list prices and {_ALIKE}", f"{_ALIKE} list and")
        half = next((part for part in found["esr_list_ratio"].reason.split("; ") if part.endswith(_HALF)), "")
        out.append(f"What was used cost {said} prices{f': {half}' if half else ''}.")
    else:
        out.append(f"No savings rate can be given: {found['esr_list_ratio'].reason}.")
    if count:
        use = found["commitment_utilisation_ratio"]
        out.append(
            f"Of the commitments paid for {percent(use.value)} was used; {money(unused, inputs.bill.currency)} was not."
            if isinstance(use.value, float)
            else f"How far commitments were used is unknown: {use.reason}."
        )
    else:
        out.append("No charge of the month is under a commitment.")
    return tuple(out)
