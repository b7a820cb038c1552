"""Questions whose files are of their own kind: schedules, serving fleets, commitments, budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.asked.calls import question
from planner.asked.given import Day, day_of, options_on, path_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.commitments.answer import CommitAnswer
    from planner.finops.budget.answer import BudgetAnswer
    from planner.schedules.answer import ScheduleAnswer
    from planner.serving.answer import ServingAnswer


@question
def schedule(
    file: str | Path,
    *,
    as_of: Day | None = None,
    gap: float = 1e-3,
    time_limit_s: float = 60.0,
    backend: str = "auto",
) -> ScheduleAnswer:
    """Find where and when the jobs of a schedule run for the least money; they may pause and move.

    Args:
        file: a YAML file (`planner schema schedule`).
        as_of: plan as on this day: earlier hours of the forecast are past; by default from its start.
        gap: relative gap at which to stop, 0..1.
        time_limit_s: longest solving, seconds.
        backend: MILP backend: `auto`, `highspy` or `scipy`.

    Raises:
        InputError: the file is wrong, or there is no such backend.
    """
    from planner.inputs.schedule_load import as_on, load_schedule
    from planner.schedules.answer import plan_schedule
    from solvers.problem.options import SolveOptions

    loaded = load_schedule(Path(file))
    if as_of is not None:
        loaded = as_on(loaded, options_on(as_of).now)
    return plan_schedule(loaded, SolveOptions(gap=gap, time_limit_s=time_limit_s, backend=backend))


@question
def serve(
    file: str | Path,
    *,
    as_of: Day | None = None,
    gap: float = 1e-4,
    time_limit_s: float = 30.0,
    backend: str = "auto",
    catalog_dir: str | Path | None = None,
) -> ServingAnswer:
    """Find the cheapest machines that answer the requests of a serving file.

    Args:
        file: a YAML file (`planner schema serving`).
        as_of: as for `optimize`.
        gap: relative gap at which to stop, 0..1.
        time_limit_s: longest solving, seconds.
        backend: MILP backend: `auto`, `highspy` or `scipy`.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: the file is wrong, or there is no such backend.
        CatalogError: the catalog cannot be used.
    """
    from planner.inputs.serving_load import load_serving
    from planner.serving.answer import plan_serving
    from solvers.problem.options import SolveOptions

    loaded, moment = load_serving(Path(file)), options_on(as_of)
    options = SolveOptions(gap=gap, time_limit_s=time_limit_s, backend=backend)
    return plan_serving(
        loaded, options, on=moment.now.date(), as_of=moment.as_of, catalog_dir=path_of(catalog_dir)
    )


@question
def commit(
    file: str | Path | None = None,
    *,
    bill: str | Path | Sequence[str | Path] = (),
    currency: str | None = None,
    seed: int | None = None,
    avoid_loss: bool = False,
    expires: Mapping[str, Day] | None = None,
    mapping: Mapping[str, str] | None = None,
    as_of: Day | None = None,
    gap: float = 1e-3,
    time_limit_s: float = 60.0,
    regret: bool = True,
    catalog_dir: str | Path | None = None,
) -> CommitAnswer:
    """Find which reservations and savings plans to buy for a demand that is known only in scenarios.

    Args:
        file: a YAML file (`planner schema commit`).
        bill: instead of a file, files, folders or globs of a bill, whose demand is drawn on.
        currency: of a bill: rows to take, ISO 4217.
        seed: of a bill: seed of its scenarios, by default 1.
        avoid_loss: of a bill: buy less, so that few scenarios cost more than buying nothing.
        expires: of a bill: last day of its commitments, by their ids, where the bill does not say it.
        mapping: of a bill in columns of its own: FOCUS column -> its column, or a constant in single quotes.
        as_of: as for `optimize`.
        gap: relative gap at which to stop, 0..1.
        time_limit_s: longest answer, seconds.
        regret: also solve each scenario alone, which shows what perfect foresight would save.
        catalog_dir: as for `optimize`.

    Raises:
        InputError: a file is wrong, neither or both of file and bill are given, or an option belongs to the other.
        CatalogError: the catalog cannot be used.
    """
    from planner.commitments.advise import advise
    from planner.commitments.asked import ask_bill, ask_file
    from planner.errors import InputError

    bills, day = texts_of(bill), day_of(as_of)
    if (file is None) == (not bills):
        raise InputError("give either the file of a question or a bill")
    if file is None:
        asked = ask_bill(
            bills, day, path_of(catalog_dir), currency=currency, seed=seed, avoid_loss=avoid_loss,
            expires={name: last for name, one in (expires or {}).items() if (last := day_of(one))},
            mapping=mapping,
        )  # fmt: skip
    elif currency is not None or seed is not None or avoid_loss or expires or mapping:
        raise InputError(
            "currency, seed, avoid_loss, expires and mapping belong to a bill: a file states its seed, risk and "
            "commitments"
        )
    else:
        asked = ask_file(Path(file), day, path_of(catalog_dir))
    return advise(
        asked.loaded, asked.catalog, gap=gap, time_limit_s=time_limit_s, with_regret=regret,
        from_bill=asked.from_bill,
    ).answer  # fmt: skip


@question
def budget(
    budgets: str | Path,
    bill: str | Path | Sequence[str | Path] = (),
    *,
    daily: str | Path | None = None,
    plans: Sequence[str] = (),
    day: Day | None = None,
    currency: str | None = None,
    rates: str | Path | None = None,
    target: str | None = None,
    drop_days: int | None = None,
) -> BudgetAnswer:
    """Check budgets against a bill or daily costs: spent, expected at the end, and how likely it is too much.

    Args:
        budgets: a YAML file (`planner schema budget`).
        bill: files, folders or globs of a bill.
        daily: instead of a bill, a CSV with date, scope, cost.
        plans: saved plans to add, as `[SCOPE=]GLOB`.
        day: check the periods of this day; by default the last known.
        currency: ISO 4217; with `daily` by default that of the budgets.
        rates: a CSV of exchange rates (date, from, to, rate), which puts all currencies of the bill into `target`.
        target: ISO 4217; the currency of the answer, with `rates` (`--in` of the command).
        drop_days: last days of the bill that are not complete; by default as found.

    Raises:
        InputError: a file cannot be read, neither or both of bill and daily are given, or currencies differ.
    """
    from planner.finops.budget.files import check_files
    from planner.finops.read.rates import read_rates

    return check_files(
        Path(budgets), texts_of(bill), daily=path_of(daily), plans=plans, day=day_of(day), currency=currency,
        drop_days=drop_days, rates=read_rates(path_of(rates), target),
    ).answer  # fmt: skip
