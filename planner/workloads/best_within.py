"""The most that a budget buys: all of the work as soon as can be, or as much of it as can be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.inputs.settings import with_settings
from planner.plan.model import Assumption
from planner.render.numbers import hours, number, percent, usd
from planner.render.units import compact
from planner.workloads.answer import Answer, optimize

if TYPE_CHECKING:
    from decimal import Decimal
    from pathlib import Path

    from planner.asked.options import Options
    from planner.inputs.load import LoadedWorkload

# What a run is measured by in a workload, and that in words; one of them is given.
AMOUNTS = {"tokens": "tokens", "samples": "samples", "steps": "steps", "epochs": "epochs"}
_PRECISION = 0.01
_LEAST_SHARE = 1e-3
_GUESSES = 6


def best_within(
    loaded: LoadedWorkload, budget_usd: Decimal, options: Options, *, catalog_dir: Path | None = None
) -> tuple[Answer, str]:  # fmt: skip
    """Find the most useful outcome of a budget; all other limits of the file hold.

    If the budget pays for all of the work, the soonest plan within it. Else the plan that does the most of it, to
    1 % of the amount: less work never costs more, so the amount is found between one that fits and one that does not.

    Args:
        loaded: the workload file; its own budget and objective are set aside.
        budget_usd: US dollars that must be enough for all obligations.
        options: flags.
        catalog_dir: snapshot directory, default the bundled one.

    Returns:
        The answer, and a sentence that says what the budget buys.

    Raises:
        InputError: the workload is wrong, or the budget is not above 0.
        CatalogError: the catalog cannot be used.
    """
    if not (budget_usd.is_finite() and budget_usd > 0):
        raise InputError(f"--best-within {budget_usd}: must be an amount above 0 US dollars")
    whole = optimize(_limited(loaded, budget_usd, "time"), options, catalog_dir=catalog_dir)
    asked = usd(budget_usd).removesuffix(".00")
    if whole.plan.status == "planned":
        return whole, f"Best within {asked}: all of the work, and soonest: {hours(whole.plan.hours)} h"
    amount = _amount(loaded)
    if amount is None:
        return (
            whole,
            f"{asked} do not pay for the work, and the file gives no amount of it that could be less",
        )
    key, total = amount
    found: tuple[float, Answer] | None = None
    low, high = _LEAST_SHARE, 1.0
    share, guesses = low, _GUESSES
    while found is None or high / low > 1.0 + _PRECISION:
        part = _limited(_scaled(loaded, key, _part(key, total, share)), budget_usd, "cost")
        answer = optimize(part, options, catalog_dir=catalog_dir)
        if answer.plan.status == "planned":
            found, low = (share, answer), share
        elif found is None:
            return (
                whole,
                f"{asked} pay for less than a thousandth of the work, or another limit rules it out",
            )
        else:
            high = share
        spent = found[1].plan.total_usd
        share = _next(low, high, budget_usd / spent if guesses > 0 and spent else None)
        guesses -= 1
    return _described(found[1], key, total, _part(key, total, found[0]), asked)


def _next(low: float, high: float, room: Decimal | None) -> float:
    """The share of the work to try next.

    Costs that do not depend on the work make a guess in proportion too small, so that guesses come from below; where
    one is too near, the next share decides whether more fits.

    Args:
        low: what fits.
        high: what does not.
        room: the budget over the cost of `low`; None: halve instead.
    """
    if room is not None:
        guess = low * max(float(room), 1.0 + 0.99 * _PRECISION)
        if guess < high:
            return guess
    return float((low * high) ** 0.5)


def _limited(loaded: LoadedWorkload, budget_usd: Decimal, objective: str) -> LoadedWorkload:
    workload = loaded.workload
    limits = workload.constraints.model_copy(update={"budget_usd": budget_usd})
    wishes = workload.preferences.model_copy(update={"objective": objective})
    return replace(
        loaded, workload=workload.model_copy(update={"constraints": limits, "preferences": wishes})
    )


def _scaled(loaded: LoadedWorkload, key: str, amount: float) -> LoadedWorkload:
    """The workload with another amount of work; flags that were put over the file stay."""
    part = with_settings(loaded, [f"training.{key}={amount}"])
    workload = loaded.workload.model_copy(update={"training": part.workload.training})
    return replace(loaded, workload=workload, sha256=part.sha256)


def _amount(loaded: LoadedWorkload) -> tuple[str, float] | None:
    """The amount of work that the file gives: its key under `training`, and how much."""
    workload = loaded.workload
    if workload.kind != "training" or workload.training is None:
        return None
    given = ((key, getattr(workload.training, key, None)) for key in AMOUNTS)
    return next(((key, float(value)) for key, value in given if value is not None), None)


def _part(key: str, total: float, share: float) -> float | int:
    """A share of the work, in whole numbers but for epochs."""
    return total * share if key == "epochs" else max(1, int(total * share))


def _described(answer: Answer, key: str, total: float, part: float, asked: str) -> tuple[Answer, str]:
    share = part / total
    done = f"{compact(part, 'count')} of {compact(total, 'count')} {AMOUNTS[key]} ({percent(share, 0)})"
    text = f"Best within {asked}: {done}, to 1 %; all of the work costs more"
    note = f"most that {asked} buy, {percent(share, 0)} of {compact(total, 'count')}"
    one = Assumption(f"training.{key}", number(part, 6), AMOUNTS[key], "derived", note)
    plan = replace(answer.plan, assumptions=(one, *answer.plan.assumptions))
    return replace(answer, plan=plan), text
