"""Questions around a plan: compare, what-if, explain, diff, size, buy or rent, validate."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from planner.asked.calls import question
from planner.asked.given import Day, day_of, options_on, path_of, texts_of
from planner.errors import InputError
from planner.inputs.kinds import loaded_as
from planner.plan.model import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.inputs.load import LoadedWorkload
    from planner.inputs.tco_load import LoadedTco
    from planner.job.compare import Comparison
    from planner.owning.answer import TcoAnswer
    from planner.plan.diff import PlanDiff
    from planner.workloads.explain import Explanation
    from planner.workloads.size import Size
    from planner.workloads.validate import Valid
    from planner.workloads.whatif import WhatIf


@question
def compare(
    workload: str | Path | LoadedWorkload,
    *,
    pick: str | Sequence[str] = (),
    over: Literal["region", "type", "option", "provider"] | None = None,
    base: str | None = None,
    as_of: Day | None = None,
    allow_flagged: bool = False,
    allow_derived: bool = False,
    catalog_dir: str | Path | None = None,
) -> Comparison:
    """Compare machines, regions, providers or purchase options for one job: each row is the best plan within it.

    Args:
        workload: a file, or a loaded one.
        pick: instance types, in the provider's spelling.
        over: instead, what to compare all of.
        base: reference row of the comparison; by default the first picked, or the best.
        as_of: as for `optimize`.
        allow_flagged: admit offers with a refusing flag.
        allow_derived: add commitment prices derived from median ratios.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: the workload or a name is wrong, or the file is a fleet.
        CatalogError: the catalog cannot be used.
    """
    from planner.job.compare import compare as find_comparison
    from planner.job.overrides import override

    loaded = override(
        loaded_as(workload, "workload"), allow_flagged=allow_flagged, allow_derived=allow_derived
    )
    return find_comparison(
        loaded, options_on(as_of), pick=texts_of(pick), over=over, base=base, catalog_dir=path_of(catalog_dir)
    )


@question
def whatif(
    workload: str | Path | LoadedWorkload,
    scenarios: Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    as_of: Day | None = None,
    catalog_dir: str | Path | None = None,
) -> WhatIf:
    """Plan a workload as it is, and with other values: `whatif(file, {"constraints.deadline": "10d"})`.

    Args:
        workload: a file, or a loaded one.
        scenarios: one or several, each with overrides of the file's values by dotted key; None removes a key.
        as_of: as for `optimize`.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: the workload or a value is wrong.
        CatalogError: the catalog cannot be used.
    """
    from planner.inputs.settings import setting_texts
    from planner.workloads.whatif import ask_whatif

    each = [scenarios] if isinstance(scenarios, Mapping) else scenarios
    texts = [setting_texts(values) for values in each]
    return ask_whatif(
        loaded_as(workload, "workload"), texts, options_on(as_of), catalog_dir=path_of(catalog_dir)
    )


@question
def explain(
    workload: str | Path | LoadedWorkload,
    *,
    why_not: str | Sequence[str] = (),
    draws: int = 1000,
    seed: int = 1,
    as_of: Day | None = None,
    catalog_dir: str | Path | None = None,
) -> Explanation:
    """Explain a plan: binding limits, what one more unit is worth, what lost, how certain the choice is.

    Args:
        workload: a file, or a loaded one.
        why_not: instance types to explain the rejection of.
        draws: random draws of prices, speed and interruptions under which the choice is compared; 0: none.
        seed: of the draws.
        as_of: as for `optimize`.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: the workload is wrong.
        CatalogError: the catalog cannot be used.
    """
    from planner.workloads.explain import explain as find_explanation

    return find_explanation(
        loaded_as(workload, "workload"), options_on(as_of), types=texts_of(why_not), draws=draws, seed=seed,
        catalog_dir=path_of(catalog_dir),
    )  # fmt: skip


@question
def diff(old: str | Path | Plan, new: str | Path | Plan) -> PlanDiff:
    """Say what changed between two plans.

    Args:
        old: the plan before: a plan, or a file saved with `Plan.save`.
        new: the plan after.

    Raises:
        InputError: a file holds no plan.
    """
    from planner.plan.diff import diff_plans
    from planner.plan.file import load_plan

    plans = [plan if isinstance(plan, Plan) else load_plan(Path(plan)) for plan in (old, new)]
    names = [
        name if isinstance(plan, Plan) else Path(plan).stem
        for plan, name in ((old, "before"), (new, "after"))
    ]
    return diff_plans(plans[0], plans[1], names[0], names[1])


@question
def diff_days(workload: str | Path | LoadedWorkload, old: Day, new: Day) -> PlanDiff:
    """Compare the plans of a workload at the prices of two days.

    Args:
        workload: a file, or a loaded one.
        old: the first day, such as `2026-11-01`.
        new: the second one.

    Raises:
        InputError: the workload is wrong.
        CatalogError: no prices of a day are stored; names the days that are.
    """
    from planner.workloads.price_days import diff_days as find_changes

    days = day_of(old), day_of(new)
    if days[0] is None or days[1] is None:
        raise InputError("diff_days compares two days: give both, such as 2026-11-01")
    return find_changes(loaded_as(workload, "workload"), days[0], days[1])


@question
def size(
    data: str,
    goal: str,
    *,
    effort: Literal["small", "medium", "large"] = "medium",
    deadline: str | None = None,
    budget_usd: float | None = None,
    location: str | None = None,
    as_of: Day | None = None,
) -> Size:
    """Suggest machines from the volume of data and the goal, and compare them with published rules of thumb.

    Args:
        data: volume, such as `100GB`.
        goal: such as `image_classification`.
        effort: how large a model and training to assume.
        deadline: time from now, such as `3w`.
        budget_usd: budget, US dollars.
        location: place of the data, such as `aws/us-east-1`.
        as_of: as for `optimize`.

    Raises:
        InputError: a value is wrong.
    """
    from planner.workloads.size import size_workload

    budget = None if budget_usd is None else Decimal(f"{budget_usd:.10g}")
    return size_workload(
        data, goal, options_on(as_of), effort=effort, deadline=deadline, budget_usd=budget, location=location
    )


@question
def tco(
    file: str | Path | LoadedTco, *, as_of: Day | None = None, catalog_dir: str | Path | None = None
) -> TcoAnswer:
    """Compare buying a machine with renting, per useful accelerator-hour over the machine's life.

    Args:
        file: a file of `planner tco`, or what `planner.inputs.tco_load.load_tco` returned.
        as_of: as for `optimize`.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: the file is wrong, or no offer to rent matches the machine.
        CatalogError: the catalog cannot be used.
    """
    from planner.inputs.tco_load import load_tco
    from planner.owning.answer import plan_tco

    loaded = load_tco(Path(file)) if isinstance(file, str | Path) else file
    return plan_tco(loaded, options_on(as_of), catalog_dir=path_of(catalog_dir))


@question
def validate(path: str | Path, *, as_of: Day | None = None) -> Valid:
    """Check an input file and report all errors at once, with their places; nothing is planned.

    Args:
        path: a workload, or the file of another question.
        as_of: as for `optimize`: the catalog's names of that day.

    Raises:
        InputError: lists every fault.
    """
    from planner.workloads.validate import validate_file

    return validate_file(Path(path), options_on(as_of))
