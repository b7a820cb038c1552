"""Why this plan: what binds, what one more unit is worth, what came next, what lost, and how sure the choice is."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from planner.candidates.choose import choose
from planner.candidates.plan_parts.frame import moment_text
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.ways.chances import stated_chance
from planner.job.explain import explain_kinds, explain_layout, why_not
from planner.job.lost import Lost, lost_offers
from planner.job.stays_best import DRAWS, SEED, StaysBest, stays_best
from planner.job.worth import Worth, worth_of_limits
from planner.plan.brief import Summary
from planner.plan.model import Plan
from planner.records import record
from planner.render.presentable import Presentable
from planner.workloads.answer import optimize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from planner.asked.options import Options
    from planner.candidates.model import Candidates
    from planner.inputs.load import LoadedWorkload

RIVALS_SHOWN = 12


@record(frozen=True)
class RivalDecision:
    """A decision that is best in some draws.

    Attributes:
        best: in brief, with its differences to the plan; finish, p_meet_deadline: as of a plan.
        best_ratio: share of draws in which it is the best; beats_ratio: in which it is better than the plan.
        same_cluster: whether it is the plan's instance type and count, bought elsewhere or in another way.
    """

    best: Summary
    finish: str
    p_meet_deadline: float | None
    best_ratio: float
    beats_ratio: float
    same_cluster: bool = False


@record(frozen=True)
class Explanation(Presentable):
    """The plan, and why it is the plan; of a fleet, or where nothing fits, without what is said of candidates.

    Attributes:
        plan: as `planner optimize` answers.
        limits: what each limit of the file is worth.
        stays: how often the choice is the best under drawn errors; compared: the decisions drawn for.
        rivals: the plan's decision, then those that are best most often.
        lost: offers that look cheaper, by what keeps them out.
        layouts, kinds: sentences on the layouts of the machines chosen, and on the best of each kind of plan.
        why_not: the same on each instance type asked about.
    """

    REPORT = "planner.workloads.explain_report:explanation_report"
    __repr__ = Presentable.__repr__

    plan: Plan
    limits: tuple[Worth, ...] = ()
    stays: StaysBest | None = None
    compared: int = 0
    rivals: tuple[RivalDecision, ...] = ()
    lost: tuple[Lost, ...] = ()
    layouts: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    why_not: tuple[tuple[str, tuple[str, ...]], ...] = ()


def explain(
    loaded: LoadedWorkload, options: Options, *, types: Sequence[str] = (), draws: int = DRAWS, seed: int = SEED,
    catalog_dir: Path | None = None, progress: Callable[[int, int], None] | None = None,
) -> Explanation:  # fmt: skip
    """Plan a workload and explain the choice.

    Args:
        loaded: the workload file.
        options: flags, as of `planner optimize`.
        types: instance types; of each, why it is not the plan.
        draws: worlds in which the choice is compared with its rivals; 0: none.
        seed: what the draws follow from.
        catalog_dir: snapshot directory, default the bundled one.
        progress: told the number of draws done and of all.

    Raises:
        InputError: the workload is wrong.
        CatalogError: the catalog cannot be used.
    """
    answer = optimize(loaded, options, catalog_dir=catalog_dir)
    asked, market, found, plan = answer.context.asked, answer.context.market, answer.found, answer.plan
    others = tuple((name, tuple(why_not(asked, market, found, name, plan))) for name in types)
    if found is None or plan.status == "infeasible":
        return Explanation(plan, why_not=others)
    candidates = found.candidates
    chosen = choose(candidates, asked.workload.preferences.objective)
    assert chosen is not None
    at = chosen.winner
    # worlds differ in prices, speed and interruptions; what a kWh emits is not drawn
    drawn = draws if asked.workload.preferences.objective != "carbon" else 0
    stays = stays_best(candidates, at, draws=drawn, seed=seed, progress=progress) if drawn else None
    return Explanation(
        plan, limits=worth_of_limits(found, at), stays=stays,
        compared=0 if stays is None else len(stays.rivals),
        rivals=() if stays is None else _rivals(candidates, at, stays),
        lost=lost_offers(found, at), layouts=tuple(explain_layout(asked, market, plan)),
        kinds=tuple(explain_kinds(found, plan)), why_not=others,
    )  # fmt: skip


def _rivals(candidates: Candidates, winner: int, stays: StaysBest) -> tuple[RivalDecision, ...]:
    out = []
    for one in stays.rivals[:RIVALS_SHOWN]:
        end = candidates.context.dates.start + timedelta(hours=float(candidates.hours[one.at]))
        out.append(
            RivalDecision(
                summarize(candidates, one.at, winner),
                moment_text(end),
                stated_chance(candidates, one.at),
                one.best_ratio,
                one.beats_ratio,
                one.same_cluster,
            )
        )
    return tuple(out)
