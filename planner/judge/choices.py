"""The decisions to weigh, recomputed: what each costs and when it is done, and that it is what its kinds say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from planner.judge import frame
from planner.judge.carbon import emitted
from planner.judge.findings import Near, Timestamp

if TYPE_CHECKING:
    from planner.judge.bench import Bench, Candidate
    from planner.judge.document import Node
    from planner.judge.findings import Findings
    from planner.judge.fleet_workers import Worker
    from planner.judge.goods import Offer
    from planner.judge.purchases import Bought

_SLIP = 1 - Fraction(1, 10**9)
_CHANCE = 1e-4
_ORDER = (
    "cheapest", "fastest", "least_carbon", "sooner", "cheaper", "reserved", "firm", "one_offer", "on_demand",
    "limits_aside", "owned", "provider", "known_prices",
)  # fmt: skip
_HAIR = 0.03  # what is sooner or cheaper by less is no other choice, nor
_LEAST = {"cost": 0.25, "time": 1.0, "carbon": 1.0}  # what is by fewer hours, or dollars
_MARGIN = 1e-6  # to which hours and costs are recomputed
_FIRST = {"cost": "cheapest", "time": "fastest", "carbon": "least_carbon"}
_WORTH = {"cost": "sooner", "time": "cheaper", "carbon": "cheaper"}


def check(
    findings: Findings,
    bench: Bench,
    plan: Node,
    candidate: Candidate,
    others: Sequence[tuple[Node, Candidate]],
) -> None:
    """The choices of a job: the plan first, the others in order, each of its kinds and the best of them named.

    Args:
        findings: where faults go.
        bench: workload and catalog.
        plan: the document.
        candidate: the plan's own candidate, recomputed.
        others: alternatives, recomputed: a kind of which there is one has a choice.
    """
    objective = bench.workload.preferences.objective
    _names(findings, plan, _FIRST[objective])
    reference = plan["total_usd"].money(), plan["hours"].number()
    rows: list[tuple[Node, Candidate]] = []
    for at, node in enumerate(plan["choices"]):
        findings.require(node["best"].is_null == (at == 0), node.path, "the plan, and only it, comes first")
        alternative: Candidate | None = candidate
        if not node["best"].is_null:
            alternative = frame.brief(findings, bench, node["best"], reference)
        else:
            findings.saw(node["best"])
        if alternative is None:
            findings.skip_unseen(node, "depends on records that are not read again")
            continue
        end = Timestamp(bench.start + timedelta(hours=min(alternative.hours, 1e6)))
        chance = None if alternative.p_meet is None else Near(alternative.p_meet, _CHANCE, 1e-5)
        findings.expect(node["finish_expected"], end)
        findings.expect(node["p_meet_deadline"], chance)
        for name in _texts(node["kinds"]):
            findings.require(_is(bench, name, alternative, candidate), node.path, f"is not {name}")
        rows.append((node, alternative))
    _in_order(findings, bench, rows, objective)
    _all_named(findings, bench, plan, rows, others, candidate)


def check_fleet(
    findings: Findings, bench: Bench, plan: Node, chance: Near | None, others: dict[str, Near | None]
) -> None:
    """The choices of a fleet: the plan, one offer alone and the baseline, each with its chance of the deadline.

    Args:
        findings: takes what is wrong.
        bench: what is recomputed from.
        plan: the plan.
        chance: of the plan.
        others: of the fleets of one offer, by the kind that names them, in the order of rows.
    """
    _names(findings, plan, _FIRST["cost"])
    baseline = plan["savings"]["baseline"]
    expected: list[dict[str, object]] = [
        {
            "kinds": ["cheapest"], "best": None, "p_meet_deadline": chance,
            "finish_expected": frame.finish(bench, plan["hours"].number()),
        }
    ]  # fmt: skip
    if not baseline.is_null:
        findings.require(named(plan, "on_demand") is not None, "choices", "no row names the baseline")
        enough = named(plan, "one_offer") is not None or not _would_do(bench, plan)
        findings.require(enough, "choices", "no row names the cheapest fleet of one offer")
    for kind, kind_chance in others.items():
        node = named(plan, kind)
        kinds = [] if node is None else _texts(node["kinds"])
        if node is None or kind != kinds[0]:
            continue
        best = baseline if "on_demand" in kinds else node["best"]
        chance = None if node["p_meet_deadline"].is_null else kind_chance  # old answers say nothing of it
        ends = frame.finish(bench, best["hours"].number())
        expected.append(
            {"kinds": kinds, "best": best.value, "p_meet_deadline": chance, "finish_expected": ends}
        )
    findings.expect(plan["choices"], expected)


def _would_do(bench: Bench, plan: Node) -> bool:
    """Whether a plan of several offers has a baseline, all on one, that keeps every limit and the deadline."""
    row = named(plan, "on_demand")
    if row is None or len(plan["lines"]) < 2 or "limits_aside" in _texts(row["kinds"]):
        return False
    sure, wanted = row["p_meet_deadline"], bench.workload.constraints.deadline_confidence
    return not sure.is_null and sure.number() >= wanted


def says_what_it_breaks(findings: Findings, bench: Bench, plan: Node, worker: Worker) -> None:
    """Whether the row of the baseline says that it breaks a limit: shares and nodes are held, others may be why."""
    row, limits = named(plan, "on_demand"), bench.workload.constraints
    if row is None:
        return
    amounts = (limits.min_total_memory_gib, limits.budget_usd, limits.max_kgco2e)
    others = limits.quota or any(limit is not None for limit in amounts)
    broken = worker.count * worker.buy.nodes > limits.max_nodes or exceeds_a_share(bench, worker)
    stated = "limits_aside" in [kind.text() for kind in row["kinds"]]
    findings.require(stated or not broken, row.path, "breaks a limit and does not say so")
    findings.require(broken or bool(others) or not stated, row.path, "breaks no limit")


def exceeds_a_share(bench: Bench, worker: Worker) -> bool:
    """Whether one offer for all of the work is more than its share."""
    fleet = bench.workload.fleet
    if fleet is None:
        return False
    parts = [fleet.max_share_per_region, fleet.max_share_per_offer]
    parts += [fleet.max_spot_share] if worker.buy.offer.is_spot else []
    return any(part not in (None, 1) for part in parts)


def named(plan: Node, kind: str) -> Node | None:
    """The choice that is the best for `kind`."""
    return next((node for node in plan["choices"] if kind in _texts(node["kinds"])), None)


def _texts(node: Node) -> list[str]:
    return [item.text() for item in node]


def _names(findings: Findings, plan: Node, first: str) -> None:
    """Each kind is named once, that of the plan first."""
    kinds = [name for node in plan["choices"] for name in _texts(node["kinds"])]
    findings.require(kinds[:1] == [first], "choices", f"the first must be {first}")
    findings.require(len(set(kinds)) == len(kinds), "choices", "a kind named twice")
    for node in plan["choices"]:
        findings.saw(node["kinds"])
        order = [_ORDER.index(name) for name in _texts(node["kinds"]) if name in _ORDER]
        findings.require(order == sorted(order), node.path, "its kinds are not in their order")


def _all_named(
    findings: Findings,
    bench: Bench,
    plan: Node,
    rows: Sequence[tuple[Node, Candidate]],
    others: Sequence[tuple[Node, Candidate]],
    candidate: Candidate,
) -> None:
    """Every row is the best of some kind, and a kind of which the plan shows a candidate has its best named."""
    for node in plan["choices"]:
        findings.require(len(node["kinds"]) > 0, node.path, "of no kind")
    kinds = {name for node in plan["choices"] for name in _texts(node["kinds"])}
    firm = next((alternative for node, alternative in rows if "firm" in _texts(node["kinds"])), None)
    for name in sorted(
        {*_KINDS, "provider", _WORTH[bench.workload.preferences.objective]} - {"known_prices"} - kinds
    ):
        for node, alternative in (*rows, *others):
            if name in ("reserved", "provider") and _is_no_choice(alternative, firm):
                continue
            unnamed = _is(bench, name, alternative, candidate, margin=-_MARGIN)
            findings.require(not unnamed, node.path, f"is {name}, which no row is named")


def _is_no_choice(candidate: Candidate, firm: Candidate | None) -> bool:
    """A commitment of a year beside a firm way without one: the row that is named firm costs (or takes) less."""
    return firm is not None and _is_commitment(candidate) and not _is_commitment(firm)


def _is_commitment(candidate: Candidate) -> bool:
    return (
        len(candidate.parts) == 1
        and bool(candidate.parts[0].offer.rule.whole_term)
        and not _is_owned(candidate.parts[0].offer)
    )


def _in_order(
    findings: Findings, bench: Bench, rows: Sequence[tuple[Node, Candidate]], objective: str
) -> None:
    values = [Fraction(_value(bench, alternative, objective)) for _, alternative in rows]
    for (node, _), value, before in zip(rows[1:], values[1:], values, strict=False):
        findings.require(value >= before * _SLIP, node.path, "better than the one before it")


def _value(bench: Bench, candidate: Candidate, objective: str) -> float | Fraction:
    """What candidates are compared by."""
    if objective == "carbon":
        kg = emitted(bench, candidate)
        return 1e30 if kg is None else kg
    return candidate.cost if objective == "cost" else candidate.hours


def _offers(candidate: Candidate) -> list[Offer]:
    return [part.offer for part in candidate.parts]


def _each(holds: Callable[[Offer], bool]) -> Callable[[Candidate], bool]:
    return lambda own: all(holds(offer) for offer in _offers(own))


def _is_owned(offer: Offer) -> bool:
    return offer.text("purchase_option") == "owned" or offer.text("option_variant") == "already_owned"


def _is_for_a_term(candidate: Candidate) -> bool:
    parts: Sequence[Bought] = candidate.parts
    rule = parts[0].offer.rule
    return (
        len(parts) == 1
        and bool(rule.whole_term or rule.block_hours)
        and parts[0].offer.text("option_variant") != "already_owned"
    )


_KINDS: dict[str, Callable[[Candidate], bool]] = {
    "reserved": _is_for_a_term,
    "firm": _each(lambda offer: not offer.is_spot),
    "on_demand": lambda own: (
        len(own.parts) == 1 and own.parts[0].offer.text("purchase_option") == "on_demand"
    ),
    "owned": lambda own: any(map(_is_owned, _offers(own))),
    "known_prices": _each(lambda offer: offer.quote.kind in ("firm", "observed", "declared", "listed")),
}


def _is(bench: Bench, name: str, candidate: Candidate, plan: Candidate, margin: float = _MARGIN) -> bool:
    """Whether a candidate is of a kind; `margin`: ratio by which a comparison of figures may be missed."""
    objective = bench.workload.preferences.objective
    if name == _FIRST[objective]:
        return candidate is plan
    if name == _WORTH[objective]:
        measure = "time" if objective == "cost" else objective  # what is weighed against cost
        first, second = (float(_value(bench, compared, measure)) for compared in (candidate, plan))
        value, limit = (first, second) if objective == "cost" else (float(candidate.cost), float(plan.cost))
        better = value < min(limit * (1 - _HAIR), limit - _LEAST[objective]) * (1 + margin)
        return better and float(candidate.cost) * first < float(plan.cost) * second * (1 + margin)
    if name == "provider":
        return candidate.parts[0].offer.text("provider") != plan.parts[0].offer.text("provider")
    return name in _KINDS and _KINDS[name](candidate)
