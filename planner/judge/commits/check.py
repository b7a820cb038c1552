"""The answer of `planner commit`: every line, figure and break-even recomputed from the question, files and catalog."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.judge.commits.figures import CommitMemory, Figures, Purchase, expiry
from planner.judge.commits.owned import expiring
from planner.judge.commits.prices import HOURS_PER_YEAR, Term
from planner.judge.findings import STATED, Between, Exactly, Findings, IfStated, Near, Printed

if TYPE_CHECKING:
    from planner.judge.document import Node

_ROUNDING_USD = 1e-6  # of what use costs where all of it is paid for already
_SIX = 5.1e-7  # figures are printed to six decimals
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
_FALLS = (0.8, 0.5)
_FORESIGHT = 1e-3  # gap to which the cost of a future known beforehand is found
_STATED = ("planner_version", "reason", "method", "rounds", "seconds", "notes")


def check(findings: Findings, memory: CommitMemory) -> None:
    """Compare a commitment answer with what is recomputed."""
    answer, question = findings.answer, memory.loaded.question
    bought = [_purchase(memory, node) for node in answer["lines"]]
    purchases = tuple(purchase for purchase, _ in bought)
    plan = memory.figures(purchases)
    weight = _weight(findings, memory)
    objective = (1 - weight) * plan.expected + weight * plan.worst
    nothing = memory.figures(())
    shares = [node["share"].number() for node in answer["levels"]]
    skipped = [node.text() for node in answer["not_evaluated"]]
    is_valid = shares == sorted(
        share for share in _SHARES if share in (0.0, 1.0) or f"levels {share:g}" not in skipped
    )
    findings.require(is_valid, "levels", "not every multiple of the plan once, in their order")
    lost = [node["share"].number() for node in answer["falls"]]
    is_valid = lost == [share for share in _FALLS if f"falls {share:g}" not in skipped]
    findings.require(is_valid, "falls", "not every share of the demand once, in their order")
    apart = "planned_usd" in answer["plan"].keys()  # noqa: SIM118 -- a node; earlier answers put now and later in one
    unknown = (
        {f"levels {share:g}" for share in _SHARES} | {f"falls {share:g}" for share in _FALLS} | {"regret"}
    )
    is_valid = skipped == sorted(set(skipped)) and set(skipped) <= unknown - {"levels 0", "levels 1"}
    findings.require(is_valid, "not_evaluated", "not ids of levels, falls or regret, in their order")
    findings.saw(answer["not_evaluated"])
    findings.expect(
        answer,
        {
            **dict.fromkeys(_STATED, STATED), "schema_version": 1, "currency": "USD", "name": question.name,
            "sha256": hashlib.sha256(memory.loaded.document.data).hexdigest(), "files": _files(memory),
            "bill": IfStated(memory.of_bill and {
                **dict.fromkeys(("currency", "seed", "expires"), STATED), "mapping": IfStated(STATED),
            }),
            "start": question.start.isoformat(), "years": memory.years, "scenarios": len(memory.futures.probability),
            "rows": sum(len(block.weight) for block in memory.blocks(1.0)),
            "risk_weight": Near(weight), "risk_level": Near(question.risk.level),
            "lines": [
                _line(memory, *line, plan, at) for at, line in enumerate(bought)
            ],
            "objective_usd": _usd(objective), **_proof(answer, objective),
            "plan": _level(1.0, plan, nothing.expected, apart),
            "nothing": _level(0.0, nothing, nothing.expected, apart),
            "levels": [
                _level(share, memory.figures(_scaled(purchases, share)), nothing.expected, apart) for share in shares
            ],
            "falls": [
                _level(share, memory.figures(purchases, share), memory.figures((), share).expected, apart)
                for share in lost
            ],
            "regret": _regret(findings, memory, plan, purchases),
            "loss": IfStated(_loss(findings, memory, plan, nothing)), "break_evens": _break_evens(memory),
            "expiring": expiring(memory, purchases, apart), "catalog": _sources(memory), "not_evaluated": skipped,
        },
    )  # fmt: skip
    _limits(findings, memory, bought)


def _usd(value: float) -> Printed:
    return Printed(value, 6, 1e-8 * abs(value) + 1e-6)


def _ratio(value: float) -> Printed:
    return Printed(value, 6, 1e-6)


def _weight(findings: Findings, memory: CommitMemory) -> float:
    """Weight of the worst outcomes; of a bill 0 too, where what would lower them costs more than it saves."""
    dropped = memory.of_bill is not None and findings.answer["risk_weight"].number() == 0.0
    return 0.0 if dropped else memory.loaded.question.risk.weight


def _files(memory: CommitMemory) -> list[dict[str, Any]]:
    if memory.of_bill is not None:
        return [{"file": STATED, "sha256": sha256} for sha256 in memory.of_bill.sha256]
    question = memory.loaded.question
    name = question.scenarios.file or question.demand.file
    if name is None:
        return []
    with memory.loaded.file(name).open("rb") as stream:
        return [{"file": name, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}]


def _sources(memory: CommitMemory) -> list[dict[str, Any]]:
    if memory.catalog is None:
        return []
    pools = memory.loaded.question.pools
    providers = {pool.provider for pool in pools if pool.instance_type is not None and len(pool.prices) < 8}
    return [
        {
            "provider": m.provider, "sha256": m.sha256, "oldest_as_of": m.oldest_as_of, "newest_as_of": m.newest_as_of,
        }
        for m in memory.catalog.manifests
        if m.provider in providers
    ]  # fmt: skip


def _purchase(memory: CommitMemory, node: Node) -> tuple[Purchase, Node]:
    """What a line buys; one that the question does not offer names what is wrong."""
    question = memory.loaded.question
    option, variant, provider = (node[name].text() for name in ("option", "variant", "provider"))
    serves = [name.text() for name in node["serves"]]
    begins = node["begins"].text()
    units = node["units"].number()
    if not 0 < units <= 1e9 or round(units, 3) != units:
        node["units"].fail("units above 0, in thousandths")
    for plan in memory.plans:
        pool_names = [question.pools[number].name for number in sorted(plan.rate)]
        if (plan.option, plan.variant, plan.provider, pool_names) == (option, variant, provider, serves):
            offered: tuple[Term, int | None, int | None, float] = (
                plan.term,
                None,
                memory.row(plan),
                plan.capacity,
            )
            break
    else:
        offered = *_unit_term(memory, node, option, variant, serves), None, 1.0
    term, pool, row, capacity = offered
    if option not in question.options.allow:
        node["option"].fail("an option that the question allows")
    if term.years > memory.years and question.tail_value is None:
        node["option"].fail("a term within the horizon, as the question gives no tail_value")
    starts = memory.starts(term, serves, provider)
    days = {day.isoformat(): day for day in starts}
    if begins not in days:
        node["begins"].fail(f"one of {', '.join(days)}")
    day = days[begins]
    return Purchase(term, pool, row, capacity, units, starts[day], day, expiry(day, term.years)), node


def _unit_term(
    memory: CommitMemory, node: Node, option: str, variant: str, serves: Sequence[str]
) -> tuple[Term, int]:
    names = [pool.name for pool in memory.loaded.question.pools]
    if len(serves) != 1 or serves[0] not in names:
        node["serves"].fail(f"the pools that {option} covers")
    pool = names.index(serves[0])
    term = memory.rates[pool].terms.get((option, variant))
    if term is None or not term.years or memory.is_plan(option, pool) or option.startswith("savings_plan"):
        node["option"].fail(f"an option of {serves[0]} that is sold by the unit")
    return term, pool


def _scaled(purchases: tuple[Purchase, ...], share: float) -> tuple[Purchase, ...]:
    """A multiple of purchases, what is bought by the unit in whole units."""
    if share == 1.0:
        return purchases
    units = [
        purchase.units * share if purchase.pool is None else float(np.rint(purchase.units * share))
        for purchase in purchases
    ]
    return tuple(
        Purchase(
            purchase.term,
            purchase.pool,
            purchase.plan,
            purchase.capacity,
            amount,
            purchase.first,
            purchase.begins,
            purchase.expires,
        )
        for purchase, amount in zip(purchases, units, strict=True)
        if amount
    )


def _line(memory: CommitMemory, one: Purchase, node: Node, plan: Figures, at: int) -> dict[str, Any]:
    question = memory.loaded.question
    by_plan = one.plan is not None
    units = Fraction(repr(one.units))
    hourly = units * (1 if by_plan else Fraction(repr(one.term.usd_per_hour)))
    upfront = units * Fraction(repr(one.upfront_usd))
    hours = ((one.expires - one.begins).days + 1) * 24
    used = plan.used[at] / plan.paid[at] if plan.paid[at] else None
    provider = question.pools[one.pool].provider if one.pool is not None else node["provider"].value
    return {
        "option": one.term.option, "variant": one.term.variant, "provider": provider,
        "serves": [name.value for name in node["serves"]], "units": Exactly(units),
        "unit": "USD/h" if by_plan or one.pool is None else question.pools[one.pool].unit,
        "usd_per_hour": Near(hourly, 1e-12, 1e-9), "upfront_usd": Near(upfront, 0.0, 0.0051),
        "total_usd": Near(hourly * hours + upfront, 0.0, 0.0051), "begins": one.begins.isoformat(),
        "expires": one.expires.isoformat(), "now": one.first == 0,
        "utilisation_ratio": None if used is None else _ratio(float(used)),
        "source": one.term.source, "as_of": one.term.as_of,
    }  # fmt: skip


def _most_units(memory: CommitMemory, purchase: Purchase) -> float | None:
    """The question's limit on one purchase."""
    question = memory.loaded.question
    if purchase.pool is None:
        return question.options.max_usd_per_hour
    return question.options.max_instances.get(question.pools[purchase.pool].name)


def _is_within_limits(memory: CommitMemory, purchases: Sequence[Purchase]) -> bool:
    """Whether the question lets all of them be bought."""
    most, upfront = (
        [_most_units(memory, one) for one in purchases],
        memory.loaded.question.options.upfront_limit_usd,
    )
    spent = sum(one.units * one.upfront_usd for one in purchases if one.first == 0)
    each = all(
        limit is None or _at_once(one, purchases) <= limit for one, limit in zip(purchases, most, strict=True)
    )
    return each and (upfront is None or spent <= upfront + 0.005)


def _at_once(purchase: Purchase, purchases: Sequence[Purchase]) -> float:
    """Units for the same pool, or dollars an hour of all plans, that are in force when a purchase begins."""
    alike = [one for one in purchases if one.pool == purchase.pool and one.covers(purchase.first)]
    return sum(one.units for one in alike) * (1 - 1e-12)  # sums of thousandths are no whole numbers of them


def _limits(findings: Findings, memory: CommitMemory, bought: Sequence[tuple[Purchase, Node]]) -> None:
    """Whole units, the question's limits, the order of lines, each once."""
    options = memory.loaded.question.options
    for purchase, node in bought:
        most = _most_units(memory, purchase)
        is_whole = purchase.pool is None or purchase.units == int(purchase.units)
        findings.require(is_whole, node["units"].path, "not a whole number of units")
        findings.require(
            most is None or _at_once(purchase, [one for one, _ in bought]) <= most,
            node["units"].path,
            f"above the limit of {most} at a time",
        )
    upfront = sum(purchase.units * purchase.upfront_usd for purchase, _ in bought if purchase.first == 0)
    limit = options.upfront_limit_usd
    findings.require(
        limit is None or upfront <= limit + 0.005, "lines", f"{upfront:.2f} upfront, at most {limit}"
    )
    keys = [(node["begins"].text(), -node["total_usd"].money()) for _, node in bought]
    findings.require(keys == sorted(keys), "lines", "not by day and cost")
    names = [
        tuple(str(node[name].value) for name in ("option", "variant", "provider", "serves", "begins"))
        for _, node in bought
    ]
    findings.require(len(set(names)) == len(names), "lines", "one commitment on two lines")


def _proof(answer: Node, objective: float) -> dict[str, Any]:
    """The bound is proven by the certificate; that it is not above the plan, its gap and the status follow."""
    bound, gap_asked = answer["bound_usd"].money(), answer["gap_asked_ratio"].number()
    most = Fraction(objective) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**6)
    is_free = abs(objective) <= _ROUNDING_USD
    gap = 0.0 if is_free else max(0.0, float(Fraction(objective) - bound) / abs(objective))
    closed = answer["method"].value == "closed_form"
    status = "optimal" if gap <= gap_asked else "feasible"
    if abs(gap - gap_asked) <= 2 * _SIX and answer["status"].value in ("optimal", "feasible"):
        status = answer["status"].text()  # the figures are rounded
    return {
        "bound_usd": _usd(objective) if closed else Exactly(min(bound, most)), "gap_asked_ratio": STATED,
        "gap_ratio": _ratio(gap), "status": status,
    }  # fmt: skip


def _level(share: float, one: Figures, without: float, apart: bool) -> dict[str, Any]:
    ratio = one.utilisation
    return {
        "share": Near(share), "committed_usd": _usd(one.committed + (0.0 if apart else one.planned)),
        **({"planned_usd": _usd(one.planned)} if apart else {}), "expected_usd": _usd(one.expected),
        "worst_usd": _usd(one.worst), "without_usd": _usd(without),
        "coverage_ratio": _ratio(one.coverage),
        "utilisation_ratio": None if ratio is None else _ratio(ratio),
        "savings_usd": Printed(without - one.expected, 2, 1e-8 * abs(without) + 1e-6),
    }  # fmt: skip


def _regret(
    findings: Findings, memory: CommitMemory, plan: Figures, purchases: tuple[Purchase, ...]
) -> dict[str, Any] | None:
    """Each future solved alone is the search's; its figures fit together and what is recomputed here."""
    node, chance = findings.answer["regret"], memory.futures.probability
    if node.is_null:
        return None
    mean, p90, worst = (node[name].number() for name in ("mean_usd", "p90_usd", "worst_usd"))
    whole = node["scenarios"].count() == len(chance)
    partly = "regret" in [item.value for item in findings.answer["not_evaluated"]]
    findings.require(
        whole != partly, node["scenarios"].path, "not of every scenario, or is though it is left out"
    )
    findings.require(
        1 <= node["scenarios"].count() <= len(chance), node["scenarios"].path, "not a count of scenarios"
    )
    ratio: Any = STATED
    if whole:
        multiples = [_scaled(purchases, share) for share in _SHARES]
        others = [memory.figures(other).costs for other in multiples if _is_within_limits(memory, other)]
        least = np.maximum(plan.costs - np.min(others, axis=0) * (1 + 2 * _FORESIGHT), 0.0)
        is_valid = mean >= float(chance @ least) - 1e-6 and worst >= float(least.max()) - 1e-6
        findings.require(is_valid, node.path, "less than against other commitments that are recomputed")
        foresight_cost = max(plan.expected - mean, 1e-9)  # what perfect foresight costs, but for its gap
        ratio = Between(mean / foresight_cost / (1 + 2 * _FORESIGHT) - _SIX, mean / foresight_cost + _SIX)
    ordered = 0.0 <= mean <= worst and 0.0 <= p90 <= worst <= float(plan.costs.max()) + 1e-6
    findings.require(ordered, node.path, "figures that are not in order")
    return {
        "mean_usd": STATED,
        "p90_usd": STATED,
        "worst_usd": STATED,
        "scenarios": STATED,
        "mean_ratio": ratio,
    }


def _loss(findings: Findings, memory: CommitMemory, plan: Figures, nothing: Figures) -> dict[str, Any]:
    """How often it loses; what is best without a price on that is the search's, and never loses less often for less."""
    risk, chance = memory.loaded.question.risk, memory.futures.probability
    close = 1e-7 * nothing.expected + _ROUNDING_USD
    surely, perhaps = (
        float(chance @ (plan.costs > nothing.costs * (1.0 + risk.loss_limit) + edge))
        for edge in (close, -close)
    )
    answer = findings.answer
    if "loss" in answer.keys():  # noqa: SIM118 -- a node, not a mapping
        loss = answer["loss"]
        often, usd = loss["plain_chance_ratio"].number(), loss["plain_expected_usd"].number()
        is_valid = often >= surely - _SIX if risk.loss_price else surely - _SIX <= often <= perhaps + _SIX
        findings.require(
            is_valid and often <= 1.0 + _SIX, loss["plain_chance_ratio"].path, "less often than the plan"
        )
        is_valid = bool(risk.loss_price) or abs(usd - plan.expected) <= 1e-8 * plan.expected + 1e-6
        findings.require(is_valid, loss["plain_expected_usd"].path, "not what the plan is expected to cost")
    used = bool((nothing.costs > _ROUNDING_USD).all())
    worst = float(np.max(plan.costs / nothing.costs - 1.0)) if used else None
    return {
        "limit_ratio": Near(risk.loss_limit), "price": Near(risk.loss_price),
        "chance_ratio": Between(surely - _SIX, perhaps + _SIX), "plain_chance_ratio": STATED,
        "plain_expected_usd": STATED, "worst_ratio": None if worst is None else _ratio(worst),
    }  # fmt: skip


def _break_evens(memory: CommitMemory) -> list[dict[str, Any]]:
    question, out = memory.loaded.question, []
    for pool, rate in zip(question.pools, memory.rates, strict=True):
        for term in (term for term in rate.committed if term.option in question.options.allow):
            spot = None if not rate.spot else _usd(HOURS_PER_YEAR * term.all_in / rate.spot)
            out.append(
                {
                    "option": term.option, "variant": term.variant, "pool": pool.name,
                    "on_demand_usd_per_hour": _usd(rate.on_demand),
                    "all_in_usd_per_hour": _usd(term.all_in),
                    "hours_per_year": _usd(HOURS_PER_YEAR * term.all_in / rate.on_demand),
                    "spot_hours_per_year": spot,
                }
            )  # fmt: skip
    return out
