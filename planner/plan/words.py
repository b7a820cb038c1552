"""Phrases about a plan: its layout, its kinds of cost, a candidate in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal

from catalogs.tables.regions import off_by_default
from planner.plan.brief import Summary
from planner.plan.layout import Layout
from planner.plan.model import Plan, PlanLine
from planner.render import claims
from planner.render.numbers import usd
from planner.render.precision import dollars_stated
from planner.render.words import cluster, devices, option, place

OBJECTIVES = {"cost": "Cheapest", "time": "Fastest", "carbon": "Least carbon"}
COST_KINDS = {
    "compute": "compute",
    "after_end": "after a commitment ends (expected)",
    "upfront": "upfront payment",
    "system_disk": "system disk",
    "data_storage": "data storage",
    "checkpoint_storage": "checkpoint storage",
    "data_transfer": "data transfer",
    "interruption": "interruptions (expected)",
}


def machines_of(plan: Plan) -> tuple[PlanLine, ...]:
    """The lines of a fleet as machines in use at once: workers that fall back are on one of two lines at a time."""
    if plan.launch is None or not plan.launch.in_parts:
        return plan.lines
    spot, later, *others = plan.lines
    both = replace(
        spot, purchase_option=f"{spot.purchase_option}, else {later.purchase_option}",
        costs=(*spot.costs, *later.costs), throughput_per_s=spot.throughput_per_s + later.throughput_per_s,
    )  # fmt: skip
    return (both, *others)


def quota_lines(plan: Plan) -> list[PlanLine]:
    """Lines whose needs of one quota add up: of two that workers are on in turn, the one that needs more of it."""
    if plan.launch is None or not plan.launch.in_parts:
        return list(plan.lines)
    spot, later, *others = plan.lines
    one = all(getattr(spot.quota, name) == getattr(later.quota, name) for name in ("name", "code", "unit"))
    return [spot if spot.quota.needed >= later.quota.needed else later, *others] if one else [*plan.lines]


def without_deadline(plan: Plan) -> str:
    """Of candidates: that those were compared that need no deadline, where others need one; else empty."""
    return f" {claims.NONE_NEEDED}" if plan.proof is not None and plan.proof.fallback_left_out else ""


def claim(plan: Plan) -> str:
    """Return what a headline may say of the plan."""
    best = OBJECTIVES.get(plan.objective, "Best")
    if plan.proof is None:
        return f"{best} feasible plan"
    what = f"feasible plan {claims.NO_DEADLINE_NEEDED}" if plan.proof.fallback_left_out else "feasible plan"
    return claims.best_plan(best, plan.proof.status, plan.proof.gap_ratio, what)


def beside_steps(ratio: float, some: str = "") -> str:
    """How run time relates to the time of the steps, whose speed a screen shows; empty at a ratio of 0.

    Args:
        ratio: time beside the steps over that of the steps.
        some: whose run time, if not that of all.
    """
    whose = f" of {some}" if some else ""
    return f"run time{whose} is {1 + ratio:g} x the steps' time" if ratio > 0 else ""


def sentence(text: str) -> str:
    """The text with a capital and a full stop; nothing of nothing."""
    return f"{text[0].upper()}{text[1:]}." if text else ""


def in_sentence(text: str) -> str:
    """A sentence as it reads behind a colon: a small letter first, no full stop."""
    return f"{text[:1].lower()}{text[1:].removesuffix('.')}"


_MOST_REGIONS = 4  # named in a line
_KINDS_OF_INFERENCE = {"data_storage": "request storage", "checkpoint_storage": "progress storage"}
# parts of a batch of requests
_PARTS = {
    "dp comm": "gradient traffic", "tp comm": "traffic inside layers", "pp comm": "traffic between stages",
    "bubble": "pipeline bubble", "fixed": "fixed time",
}  # fmt: skip
_PARTS_OF_INFERENCE = {"compute": "reading prompts", "generation": "writing answers"}


def layout_words(layout: Layout, *, inference: bool = False) -> str:
    """Return a parallel layout in words; what is 1 by default is left out, replicas of inference share nothing."""
    if inference:
        replicas = "1 replica" if layout.data_parallel == 1 else f"{layout.data_parallel} replicas"
        each = layout.tensor_parallel
        return f"{replicas} of {each} accelerator{'s' if each > 1 else ''}"
    parts = [f"tensor {layout.tensor_parallel}", f"pipeline {layout.pipeline_parallel}"]
    if layout.context_parallel > 1:
        parts.append(f"context {layout.context_parallel}")
    if layout.expert_parallel > 1:
        parts.append(f"expert {layout.expert_parallel}")
    if layout.interleave > 1:
        parts.append(f"{layout.interleave} virtual stages each")
    parts += [f"data {layout.data_parallel}", f"ZeRO stage {layout.zero_stage}"]
    parts.append(
        f"micro-batch {layout.micro_batch} x {layout.grad_accumulation} accumulated{_updates(layout)}"
    )
    return ", ".join([*parts, f"recompute {layout.recompute}"])


def short_layout(layout: Layout, *, inference: bool = False) -> str:
    """Return the degrees of a parallel layout above one, and the batch: `data 32, ZeRO 3, micro-batch 1 x 16`."""
    if inference:
        return layout_words(layout, inference=True)
    degrees = (
        ("tensor", layout.tensor_parallel), ("pipeline", layout.pipeline_parallel),
        ("context", layout.context_parallel), ("expert", layout.expert_parallel), ("data", layout.data_parallel),
        ("ZeRO", layout.zero_stage),
    )  # fmt: skip
    parts = [f"{name} {degree}" for name, degree in degrees if degree > (0 if name == "ZeRO" else 1)]
    batch = f"micro-batch {layout.micro_batch} x {layout.grad_accumulation}{_updates(layout)}"
    return ", ".join([*parts, batch])


def _updates(layout: Layout) -> str:
    """How often a step updates the model, where it does several times."""
    count = layout.updates_per_step
    return f", {count} updates a step" if count > 1 else ""


def old_price(instance_type: str, as_of: str, age_days: int) -> str:
    """Warn of an old price."""
    return f"the price of {instance_type} is {age_days} days old ({as_of})"


def enable_first(places: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What an account must do before it has the regions that an answer rests on; empty where there is nothing.

    Args:
        places: provider and region, in the order of the answer.
    """
    off = [region for provider, region in dict.fromkeys(places) if f"{provider}/{region}" in off_by_default()]
    if not off:
        return ()
    is_off, pronoun = ("is off by default", "it") if len(off) == 1 else ("are off by default", "them")
    more = f" and {len(off) - _MOST_REGIONS} more" if len(off) > _MOST_REGIONS else ""
    return (f"{', '.join(off[:_MOST_REGIONS])}{more} {is_off}: enable {pronoun} in the account first",)


def places_of(chosen: Iterable[Summary]) -> Iterator[tuple[str, str]]:
    """Provider and region of candidates, with those of a fall-back."""
    for candidate in chosen:
        yield from (
            (candidate.provider, region)
            for region in (candidate.region, *(part.region for part in candidate.parts))
            if region
        )


def over_budget(worst_usd: Decimal, budget_usd: Decimal) -> str:
    """Warn of a worst case above the budget."""
    return f"in the worst case the cost exceeds the budget: {usd(worst_usd)} > {dollars_stated(budget_usd)}"


def summary(item: Summary) -> str:
    """Name a candidate: cluster, accelerators, option and place."""
    inside = devices(item.accelerators, item.accelerator)
    machines = cluster(item.nodes, item.instance_type) + (f" ({inside})" if inside else "")
    where = place(item.provider, item.region, item.zone)
    return f"{machines}, {option(item.purchase_option, item.option_variant)}, {where}"


def own_machines(marginal: str, full: str) -> str:
    """What own machines cost at the margin and in full; `full` may be unknown ("")."""
    bought = f"{full} with the purchase" if full else "what the purchase adds is unknown"
    return f"{marginal} at power and hosting, which fall due; {bought}"


def own_machines_of(item: Summary) -> str:
    """The same of a candidate, "" where it uses no own machine of known cost."""
    if item.marginal_cost_usd is None:
        return ""
    return own_machines(
        usd(item.marginal_cost_usd), "" if item.full_cost_usd is None else usd(item.full_cost_usd)
    )


def cost_kind(kind: str, *, inference: bool = False) -> str:
    """Return a cost kind in words."""
    kinds = COST_KINDS | _KINDS_OF_INFERENCE if inference else COST_KINDS
    return kinds.get(kind, kind.replace("_", " "))


def step_part(name: str, *, inference: bool = False) -> str:
    """Return a part of a step, or of a batch of requests, in words."""
    plain = name.removesuffix("_s").replace("_", " ")
    return (_PARTS | _PARTS_OF_INFERENCE if inference else _PARTS).get(plain, plain)
