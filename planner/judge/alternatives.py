"""The decisions beside a plan, recomputed: their order, in what each is new, and the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from planner.judge import frame
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near
from planner.records import record

if TYPE_CHECKING:
    from planner.judge.bench import Bench, Candidate
    from planner.judge.document import Node
    from planner.judge.purchases import Buy

ON_DEMAND = {"cost": "cheapest feasible on-demand candidate", "time": "fastest feasible on-demand candidate",
             "carbon": "least carbon feasible on-demand candidate"}  # fmt: skip
_FIGURES = {"cost": "cost_usd", "time": "hours", "carbon": "operational_kgco2e"}
_SLIP = 1 - Fraction(1, 10**9)
Reference = tuple[Fraction, float]


@record(frozen=True)
class Decision:
    """What a candidate is to a buyer."""

    accelerator: str
    provider: str
    region: tuple[str, str]
    size: float
    way: tuple[object, ...]


def value_in(bench: Bench, node: Node) -> Fraction:
    """What a candidate in brief is compared by: cost, hours or emissions."""
    return node[_FIGURES[bench.workload.preferences.objective]].money()


def value_of_plan(bench: Bench, plan: Node) -> Fraction:
    """What the plan is compared by."""
    objective = bench.workload.preferences.objective
    if objective == "carbon":
        return plan["carbon"]["operational_kgco2e"].money()
    return plan["total_usd" if objective == "cost" else "hours"].money()


def decision_of(buys: Sequence[Buy], *, in_turn: bool) -> Decision:
    """What a candidate with these purchases is to a buyer."""
    lead = frame.leading(buys, in_turn=in_turn)
    spot = sum(buy.offer.is_spot for buy in buys)
    way: tuple[object, ...] = ("in turn", spot > 1, spot < len(buys))
    if not in_turn:
        way = tuple(sorted((buy.offer.text("purchase_option"), _is_owned(buy)) for buy in buys))
    nodes = buys[0].nodes if in_turn else sum(buy.nodes for buy in buys)
    accelerators = round(nodes * float(lead.accelerators), 3)
    return Decision(str(lead.kind["accelerator"]), lead.text("provider"), lead.place, accelerators, way)


def _is_owned(buy: Buy) -> bool:
    return buy.offer.text("option_variant") == "already_owned"


def alternatives(
    findings: Findings, bench: Bench, plan: Node, reference: Reference, chosen: Decision
) -> list[tuple[Node, Candidate]]:
    """Alternatives recomputed: in order, none better than the plan, no decision twice, each new in what it says."""
    accepted: list[tuple[Node, Candidate]] = []
    above = [chosen]
    values = [value_of_plan(bench, plan)]
    if not plan["alternatives"].value:
        findings.saw(plan["alternatives"])
    for node in plan["alternatives"]:
        parts, turns = frame.purchases(bench.goods, node)
        decision = decision_of(parts, in_turn=turns)
        findings.require(decision not in above, node.path, "a decision named twice")
        candidate = frame.brief(findings, bench, node, reference, _brings(above, decision))
        if candidate is not None:
            accepted.append((node, candidate))
        above.append(decision)
        values.append(value_in(bench, node))
    for at, value in enumerate(values[1:]):
        better = "better than the one before it"
        findings.require(value >= values[at] * _SLIP, f"alternatives[{at}]", better)
    _folded(findings, bench, plan, reference, above[0])
    return accepted


def on_known_prices(findings: Findings, bench: Bench, plan: Node, reference: Reference) -> None:
    """The best candidate on observed or firm prices, recomputed, rests on such prices."""
    node = plan["on_known_prices"]
    if node.is_null:
        findings.saw(node)
        return
    parts, _ = frame.purchases(bench.goods, node)
    frame.brief(findings, bench, node, reference)
    is_known = all(buy.offer.quote.kind in ("firm", "observed", "declared", "listed") for buy in parts)
    findings.require(is_known, node.path, "depends on a price that is neither observed nor firm")


def _brings(above: Sequence[Decision], decision: Decision) -> list[str]:
    """In what nothing above is like a decision; of the plan's own kind: region or size."""
    names = ("accelerator", "provider", "way")
    new = [
        name
        for name in names
        if all(getattr(previous, name) != getattr(decision, name) for previous in above)
    ]
    return new or ["size" if decision.region == above[0].region else "region"]


def _folded(findings: Findings, bench: Bench, plan: Node, reference: Reference, chosen: Decision) -> None:
    """Decisions folded into the plan: no better than it, and different in the one thing that is stated."""
    if not plan["folded"].value:
        findings.saw(plan["folded"])
    for node in plan["folded"]:
        stated: dict[str, Any] = dict.fromkeys(("rank", "differs_in", "count"), STATED)
        findings.expect(node, stated | {"best": None if node["best"].is_null else STATED})
        if node["best"].is_null:
            continue
        best = node["best"]
        parts, turns = frame.purchases(bench.goods, best)
        frame.brief(findings, bench, best, reference)
        worse = value_in(bench, best) >= value_of_plan(bench, plan) * _SLIP
        findings.require(worse, best.path, "better than the plan that represents it")
        facet, unlike = node["differs_in"].text(), _unlike(chosen, decision_of(parts, in_turn=turns))
        findings.require(unlike == [facet], node.path, f"differs in {' and '.join(unlike) or 'nothing'}")


def hidden(findings: Findings, bench: Bench, plan: Node, reference: Reference) -> None:
    """What is better than the plan but needs a port, a quote or an account: recomputed, and really better."""
    if not plan["relaxations"].value:
        findings.saw(plan["relaxations"])
    for node in plan["relaxations"]:
        stated = dict.fromkeys(("current", "needed", "note", "best"), STATED)
        offered = node["constraint"].text()
        known = (*OFFERED, _NEARLY_SURE, _LATER)
        among = offered if offered in known else " or ".join(known)
        changes = _changes(bench, node, offered)
        findings.expect(node, {"constraint": among, "times": IfStated(None), "changes": changes, **stated})
        for said in ("current", "needed") if "changes" in node else ():
            same = node[said].text() == node["changes"][0][said].text()
            findings.require(same, node[said].path, "not what the change of the limit says")
        case = _by_later(findings, bench, node) if offered == _LATER else bench
        candidate = frame.brief(findings, case, node["best"], reference)
        better = value_in(bench, node["best"]) < value_of_plan(bench, plan)
        findings.require(better, node.path, "no better than the plan")
        if offered == _NEARLY_SURE:
            _nearly_sure(findings, bench, plan, node, None if candidate is None else candidate.p_meet)
        if offered == _LATER:
            saves = value_in(bench, node["best"]) <= value_of_plan(bench, plan) * _WORTH_IT / _SLIP
            findings.require(saves, node.path, "not a tenth cheaper than the plan")
            sure = (
                candidate is None
                or (candidate.p_meet or 0.0) >= case.workload.constraints.deadline_confidence - _CHANCE_SLIP
            )
            findings.require(sure, node.path, "not sure enough by the later deadline")


def _changes(bench: Bench, node: Node, name: str) -> Any:
    """How the one limit changes: its own value, and what is enough in words as in numbers."""
    limits = {_NEARLY_SURE: bench.workload.constraints.deadline_confidence, _LATER: bench.deadline_hours}
    if name not in limits:
        words = {"current": node["current"].text(), "needed": node["needed"].text()}
        return IfStated([{"constraint": name, **words, "limit": None, "enough": None}])
    form, limit, enough = _FORMS[name], limits[name], node["changes"][0]["enough"].number()
    words = {"current": form.format(limit), "needed": form.format(enough)}
    return [{"constraint": name, **words, "limit": Near(limit), "enough": enough}]


def _by_later(findings: Findings, bench: Bench, node: Node) -> Bench:
    """The job with the deadline that is named, at most a quarter later than its own."""
    own, hours = bench.deadline_hours, node["changes"][0]["enough"].number()
    is_later = own < hours <= own * _A_LITTLE + _STATED_TO_HOURS
    findings.require(is_later, node["changes"].path, "no deadline up to a quarter later")
    return bench.by_deadline(timedelta(hours=hours)) if is_later else bench


def _nearly_sure(findings: Findings, bench: Bench, plan: Node, node: Node, chance: float | None) -> None:
    """What just misses the chance asked: far cheaper, with the chance that it states."""
    far = value_in(bench, node["best"]) <= value_of_plan(bench, plan) * _FAR_LESS / _SLIP
    findings.require(far, node.path, "not far cheaper than the plan")
    asked = bench.workload.constraints.deadline_confidence
    if chance is None:
        return
    near = asked - _JUST_MISSED - _CHANCE_SLIP <= chance < asked + _CHANCE_SLIP
    findings.require(near, node.path, "not nearly as sure as asked, or sure enough")
    stated = abs(node["changes"][0]["enough"].number() - chance) <= _STATED_TO + _CHANCE_SLIP
    findings.require(stated, node.path, f"its chance is {chance:.3f}")


def _unlike(one: Decision, other: Decision) -> list[str]:
    names = ["accelerator", "provider", "size", "way"]
    if one.provider == other.provider:
        names.append("region")
    return [name for name in names if getattr(one, name) != getattr(other, name)]


OFFERED = ("software", "derived_price", "partition")  # limits whose better plans are named beside a plan
_NEARLY_SURE = "confidence"  # a limit that something far cheaper just misses
_JUST_MISSED, _FAR_LESS = 0.1, Fraction(7, 10)
_LATER, _WORTH_IT = "deadline", Fraction(9, 10)  # by which something is cheaper
_A_LITTLE, _STATED_TO_HOURS = 1.25, 0.1
_FORMS = {_NEARLY_SURE: "{:g}", _LATER: "{:,.1f} h"}  # of their values in words
_STATED_TO, _CHANCE_SLIP = 0.001, 1e-4
_YOURS = ("", "your cluster")  # answers saved before it was named say nothing


def savings(findings: Findings, bench: Bench, plan: Node, reference: Reference) -> None:
    """The baseline recomputed, and the difference to it."""
    node, objective = plan["savings"], bench.workload.preferences.objective
    if node["baseline"].is_null:
        findings.expect(node, {"baseline": None, "saved_usd": None, "saved_ratio": None, "note": STATED})
        return
    baseline = bench.workload.baseline
    cost = node["baseline"]["cost_usd"].money()
    expected: dict[str, Any] = {
        "baseline": STATED, "saved_usd": Exactly(cost - reference[0]),
        "saved_ratio": Near((cost - reference[0]) / cost if cost else 0.0),
        "note": STATED if baseline else ON_DEMAND[objective],
    }  # fmt: skip
    findings.expect(node, expected)
    if baseline is None:
        candidate = frame.brief(findings, bench, node["baseline"], reference)
        options = (
            {part.offer.text("purchase_option") for part in candidate.parts} if candidate else {"on_demand"}
        )
        findings.require(options == {"on_demand"}, node["baseline"].path, "the baseline is not on-demand")
        _best_on_demand(findings, bench, plan)
        return
    summary, candidate = frame.summary(bench, node["baseline"], reference)
    for name in ("provider", "region", "instance_type", "purchase_option", "nodes"):
        summary[name] = getattr(baseline, name)
    if baseline.price_per_hour_usd is not None:
        compute = candidate.parts[0].charges[0]
        hours = candidate.parts[0].hours * baseline.nodes
        usd = candidate.cost - compute.usd + hours * Fraction(str(baseline.price_per_hour_usd))
        summary |= {"cost_usd": Near(usd, 1e-8), "marginal_cost_usd": None, "full_cost_usd": None}
    label = node["baseline"]["label"]
    findings.require(
        label.text() in _YOURS, label.path, "the baseline is the cluster that the workload names"
    )
    summary["label"] = label.text()
    findings.expect(node["baseline"], summary)


def _best_on_demand(findings: Findings, bench: Bench, plan: Node) -> None:
    """No alternative that is bought on demand alone is better than the baseline."""
    figure = _FIGURES[bench.workload.preferences.objective]
    base = plan["savings"]["baseline"][figure].money()
    for node in plan["alternatives"]:
        options = {part["purchase_option"].text() for part in node["parts"]}
        better = options == {"on_demand"} and node[figure].money() < base * _SLIP
        findings.require(not better, node.path, "on-demand, and better than the baseline")
