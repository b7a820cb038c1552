"""From a commitment question to its answer: prices, futures, model, solution, figures."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.answer import CommitAnswer, Expiring, File, Line, Source
from planner.commitments.avoid_loss import avoid_loss, loss_of
from planner.commitments.build import Built, build_model, horizon_years
from planner.commitments.clock import Clock
from planner.commitments.figures import (
    break_evens,
    level_of,
    regret_of,
    scaled,
    utilisation_by_column,
)
from planner.commitments.history import read_history
from planner.commitments.prices import WANTED, pool_prices, without_commitments
from planner.commitments.recourse import Recourse
from planner.commitments.scenarios import draw_futures, read_futures
from planner.commitments.solve import Solved, solve_bill, solve_commit
from planner.commitments.use import use_of
from planner.records import record
from planner.render.numbers import usd
from solvers.problem.solution import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from catalogs.tables.model import Catalog
    from planner.commitments.answer import Level, Loss, Regret
    from planner.commitments.from_bill import FromBill
    from planner.commitments.model import CommitModel
    from planner.commitments.scenarios import Futures
    from planner.inputs.commit_load import LoadedCommit
    from planner.inputs.commit_schema import CommitQuestion, Pool, Risk
    from solvers.search.decompose import Round

FALLS = (0.8, 0.5)  # demand that remains
LEVELS = (
    0.5,
    1.5,
    0.75,
    1.25,
    0.25,
)  # multiples of the plan that are shown beside 0 and 1, the most telling first
SEARCH_SHARE = 0.7  # of the time limit; figures need some too
AVOID_SHARE = 0.5  # of what the search leaves, for purchases that seldom lose
REGRET_SHARE = 0.7  # of what the search and the first figures leave
CENT = Decimal("0.01")
_DEARER = "what would lower the cost of the worst scenarios costs more than it saves in the mean of all: not proposed"


@record(frozen=True, eq=False)
class Work:
    """An answer with the model and the solution behind it, for certificates and notebooks."""

    answer: CommitAnswer
    built: Built
    solved: Solved


def advise(
    loaded: LoadedCommit,
    catalog: Catalog | None,
    *,
    gap: float = 1e-3,
    time_limit_s: float = 60.0,
    with_regret: bool = True,
    progress: Callable[[Round], None] | None = None,
    stage: Callable[[str], None] = lambda _stage: None,
    from_bill: FromBill | None = None,
) -> Work:
    """Answer a commitment question.

    Args:
        loaded: the question.
        catalog: prices; None where every pool gives its own.
        gap: relative gap at which the answer counts as optimal.
        time_limit_s: wall-clock limit of the search; figures take what is left of it.
        with_regret: whether to solve each scenario alone too.
        progress: called after each round of the search.
        stage: called with the name of each stage as it begins.
        from_bill: the bill that the question was made of, with its scenarios; None for a question of a file.

    Raises:
        InputError: a file, a price or an option is wrong or missing.
    """
    begun = time.perf_counter()
    question = loaded.question
    stage("prices and demand")
    prices = pool_prices(catalog, question.pools, loaded.document.path.name, loaded.document.source)
    years = horizon_years(question, prices)
    futures, notes = _futures(loaded, from_bill, years)
    built = build_model(question, prices, futures, years)
    stage("search")
    clock = Clock(begun + time_limit_s)
    limit_s = SEARCH_SHARE * clock.left_s()
    if from_bill is None:
        solved = solve_commit(built.model, gap=gap, time_limit_s=limit_s, progress=progress)
    else:
        model, solved = solve_bill(built.model, gap=gap, time_limit_s=limit_s, progress=progress)
        notes += [] if model is built.model else [_DEARER]
        built = replace(built, model=model)
    if (plain := solved).reason == Termination.INTERRUPTED.value:
        clock.stop()  # whoever interrupts waits for no further figure
    if question.risk.loss_price:
        stage("less to lose")
        solved, cut = _seldom_loses(built.model, plain, question.risk, gap, clock)
        notes += cut
    figures = _figures(built, solved, question, clock, with_regret, stage)
    if figures.skipped:
        why = "interrupted before" if clock.interrupted else "the time limit left no room for"
        notes.append(f"{why}: {', '.join(figures.skipped.values())}")
    notes += _binding(built.model, solved.x)
    unpriced = without_commitments(question.pools, prices, question.options.allow)
    said = (*notes, *futures.notes, *built.notes, *unpriced)
    loss = clock.needed(partial(loss_of, built.model, solved, plain, question.risk))
    outcome = (figures, loss)
    assembled = partial(_assemble, loaded, from_bill, built, solved, outcome, said, catalog, gap)
    return Work(clock.needed(assembled), built, solved)


def _futures(loaded: LoadedCommit, from_bill: FromBill | None, years: int) -> tuple[Futures, list[str]]:
    """The scenarios, and what is to be said of the bill or the history that they are drawn from."""
    question = loaded.question
    if from_bill is not None:
        return from_bill.futures, [*from_bill.notes]
    if question.scenarios.file is not None:
        return read_futures(loaded.file(question.scenarios.file), question.pools, question.start, years), []
    demand, history, notes = question.demand, None, []
    if demand.file is not None:
        history = read_history(loaded.file(demand.file), question.pools, demand.format)
        notes = [*history.notes]
    return draw_futures(question, history, years), notes


def _seldom_loses(
    model: CommitModel, plain: Solved, risk: Risk, gap: float, clock: Clock
) -> tuple[Solved, list[str]]:
    """What seldom loses in place of what is best, and that its search was cut short."""
    until = time.perf_counter() + AVOID_SHARE * clock.left_s()
    try:
        solved, ended = avoid_loss(model, plain, risk, gap=gap, deadline=until)
    except KeyboardInterrupt:  # before its search, or after it
        solved, ended = plain, Termination.INTERRUPTED
    if ended is Termination.INTERRUPTED:
        clock.stop()
    by = "Ctrl-C" if clock.interrupted else "the time limit"
    return solved, [f"{by} ended the search for purchases that rarely lose"] if ended else []


def _binding(model: CommitModel, x: Floats) -> list[str]:
    """Say that the upfront limit leaves no room for one more unit, where it does."""
    upfront = np.array([column.upfront_usd for column in model.columns])
    more = upfront[(upfront > 0) & (x + 1 <= [column.upper for column in model.columns])]
    if not len(more) or float(upfront @ x) + float(more.min()) <= model.upfront_limit_usd:
        return []
    return [f"the upfront limit of {usd(model.upfront_limit_usd)} leaves no room for one more unit"]


@record(frozen=True, eq=False)
class _Figures:
    """Figures of the plan, the most important first; `skipped` says in words, by id, what the clock did not allow."""

    levels: tuple[Level, ...]
    falls: tuple[Level, ...]
    regret: Regret | None
    skipped: dict[str, str]


def _figures(
    built: Built,
    solved: Solved,
    question: CommitQuestion,
    clock: Clock,
    with_regret: bool,
    stage: Callable[[str], None],
) -> _Figures:
    x, skipped = solved.x, dict[str, str]()
    stage("figures of the plan")
    recourse = Recourse(built.model)
    nothing: Level = clock.needed(lambda: level_of(built, np.zeros_like(x), 0.0, None, recourse))
    levels = [nothing, clock.needed(lambda: level_of(built, x, 1.0, nothing.expected_usd, recourse))]
    falls = []
    for share in FALLS:
        fall = clock.optional(partial(_fall, built, question, x, share))
        if fall is None:
            skipped[f"falls {share:g}"] = f"{100 * (1 - share):.0f} % less demand"
        else:
            falls.append(fall)
    regret = None
    if with_regret:
        stage("regret: each scenario alone")
        regret, interrupted = regret_of(built.model, x, solved.recourse, REGRET_SHARE * clock.left_s())
        if interrupted:
            clock.stop()
    if with_regret and (regret is None or regret.scenarios < len(built.futures.names)):
        skipped["regret"] = "the regret of every scenario"
    for share in LEVELS:
        scaled_x = scaled(built.model, x, share)
        level = clock.optional(partial(level_of, built, scaled_x, share, nothing.expected_usd, recourse))
        if level is None:
            skipped[f"levels {share:g}"] = f"{100 * share:.0f} % of the plan"
        else:
            levels.append(level)
    levels.sort(key=lambda level: level.share)
    return _Figures(tuple(levels), tuple(falls), regret, skipped)


def _fall(built: Built, question: CommitQuestion, x: Floats, share: float) -> Level:
    """The plan where only this share of demand remains."""
    less = build_model(question, built.prices, built.futures, built.years, demand_factor=share)
    return level_of(_aligned(built, less), x, share)


def _assemble(
    loaded: LoadedCommit,
    from_bill: FromBill | None,
    built: Built,
    solved: Solved,
    outcome: tuple[_Figures, Loss],
    notes: tuple[str, ...],
    catalog: Catalog | None,
    gap: float,
) -> CommitAnswer:
    question, x = loaded.question, solved.x
    figures, loss = outcome
    return CommitAnswer(
        name=question.name,
        sha256=sha256(loaded.document.data).hexdigest(),
        files=_files(loaded) if from_bill is None else from_bill.files,
        bill=None if from_bill is None else from_bill.asked,
        status=solved.status,
        reason=solved.reason,
        start=question.start,
        years=built.years,
        scenarios=len(built.futures.names),
        rows=sum(len(block.weight) for block in built.model.hours),
        risk_weight=built.model.risk_weight,
        risk_level=question.risk.level,
        lines=_lines(built, x),
        objective_usd=solved.objective_usd,
        bound_usd=solved.bound_usd,
        gap_ratio=solved.gap_ratio,
        gap_asked_ratio=gap,
        plan=next(level for level in figures.levels if level.share == 1),
        nothing=next(level for level in figures.levels if level.share == 0),
        levels=figures.levels,
        falls=figures.falls,
        regret=figures.regret,
        loss=loss,
        not_evaluated=tuple(sorted(figures.skipped)),
        break_evens=tuple(item for item in break_evens(built) if item.option in question.options.allow),
        expiring=_expiring(loaded, built, x),
        method=solved.method,
        rounds=len(solved.rounds),
        seconds=solved.seconds,
        catalog=_sources(catalog, question),
        notes=notes,
    )


def _aligned(built: Built, less: Built) -> Built:
    """Return `less` with the columns of `built`: lower demand lowers upper bounds and may drop columns."""
    model = replace(less.model, columns=built.model.columns, caps=built.model.caps)
    return replace(less, model=model, buyable=built.buyable)


def _lines(built: Built, x: Floats) -> tuple[Line, ...]:
    used, paid = utilisation_by_column(built, x, use_of(built.model, x)) if x.any() else (x, x)
    out = []
    for number in np.flatnonzero(x):
        item = built.buyable[number]
        units = Decimal(repr(round(float(x[number]), 3))).normalize()
        hourly = units * Decimal(repr(item.usd_per_hour))
        upfront = units * Decimal(repr(item.upfront_usd))
        hours = ((item.expires - item.begins).days + 1) * 24
        total = (hourly * hours + upfront).quantize(CENT)
        share = float(used[number] / paid[number]) if paid[number] else None
        out.append(
            Line(
                item.option,
                item.variant,
                item.provider,
                item.serves,
                units,
                item.unit,
                hourly,
                upfront.quantize(CENT),
                total,
                item.begins,
                item.expires,
                item.now,
                share,
                item.source,
                item.as_of,
            )
        )
    return tuple(sorted(out, key=lambda line: (line.begins, -line.total_usd)))


def _expiring(loaded: LoadedCommit, built: Built, x: Floats) -> tuple[Expiring, ...]:
    question = loaded.question
    end = question.start + timedelta(days=built.years * 365)
    out, used_ratio = [], _owned_use(built)
    for own in question.commitments:
        if own.expires >= end:
            continue
        mine = own.pool or f"{own.provider} plan"
        now = then = 0.0  # bought at the start, and planned for the day after
        for number, item in enumerate(built.buyable):
            by_plan = item.unit == "USD/h"  # dollars of a plan are no units
            if (
                own.pool in item.serves and not by_plan
                if own.pool
                else by_plan and item.provider == own.provider
            ):
                now += float(x[number]) if item.now else 0.0
                then += float(x[number]) if item.begins == own.expires + timedelta(days=1) else 0.0
        units = float(own.instances or own.usd_per_hour or 0.0)
        unit = "USD/h" if own.pool is None else next(p.unit for p in question.pools if p.name == own.pool)
        days = (own.expires - question.start).days + 1
        used = None if own.pool is None else used_ratio[own.pool]
        out.append(Expiring(own.purchase_option, mine, units, unit, own.expires, days, used, now, then))
    return tuple(sorted(out, key=lambda item: item.expires))


def _owned_use(built: Built) -> dict[str, float | None]:
    """Share of the owned units of each pool that is used while they last."""
    used, total = np.zeros(len(built.prices)), np.zeros(len(built.prices))
    for block, gross in zip(built.model.hours, built.gross, strict=True):
        time, owned = built.model.probability[block.scenario] * block.weight, built.owned[block.period]
        used += time @ np.minimum(gross, owned)
        total += time.sum() * owned
    pairs = zip(built.model.pools, used.tolist(), total.tolist(), strict=True)
    return {pool: each / whole if whole else None for pool, each, whole in pairs}


def _files(loaded: LoadedCommit) -> tuple[File, ...]:
    """The files of use that were read."""
    question = loaded.question
    drawn = question.scenarios.file is None
    name = question.demand.file if drawn else question.scenarios.file
    if name is None:
        return ()
    with loaded.file(name).open("rb") as stream:
        return (File(name, file_digest(stream, "sha256").hexdigest()),)


def _sources(catalog: Catalog | None, question: CommitQuestion) -> tuple[Source, ...]:
    if catalog is None:
        return ()
    wanted = {pool.provider for pool in question.pools if _from_catalog(pool)}
    return tuple(
        Source(manifest.provider, manifest.sha256, manifest.oldest_as_of, manifest.newest_as_of)
        for manifest in catalog.manifests
        if manifest.provider in wanted
    )


def needs_catalog(loaded: LoadedCommit) -> bool:
    """Whether a pool names a machine whose prices are not all given."""
    return any(_from_catalog(pool) for pool in loaded.question.pools)


def _from_catalog(pool: Pool) -> bool:
    return pool.instance_type is not None and not set(WANTED) <= set(pool.prices)
