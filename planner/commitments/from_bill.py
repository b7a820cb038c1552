"""From a bill to a commitment question with its scenarios: `planner commit --from-focus`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.model import HOURS_PER_YEAR, PurchaseOption
from planner.commitments.answer import BillAsked
from planner.commitments.bill import BillUse, read_use
from planner.commitments.bill_prices import Key
from planner.commitments.prices import pool_prices
from planner.commitments.walk import draw_year
from planner.errors import InputError
from planner.inputs.commit_load import LoadedCommit
from planner.inputs.commit_schema import CommitQuestion, Options, Owned, Pool, Risk, Scenarios
from planner.inputs.documents import Document
from planner.inputs.faults import Source
from planner.inputs.purchase_options import COMMIT_OPTIONS
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date

    from catalogs.tables.model import Catalog
    from planner.commitments.answer import File
    from planner.commitments.scenarios import Futures

YEAR_OPTIONS = tuple(
    option for option in COMMIT_OPTIONS if PurchaseOption(option).term_hours == HOURS_PER_YEAR
)
RISK = Risk(weight=0.3, level=0.9)
SELDOM_LOSES = RISK.model_copy(update={"loss_price": 1.5})  # docs/optimisation/commit.md, "Seldom a loss"
COUNT, HOURS, DAYS = 60, 300, 120  # scenarios; steps of each that are evaluated
LOSS_COUNT, LOSS_HOURS, LOSS_DAYS = 200, 100, 40  # the same where losses count
_MOST_POOLS = 64
_SHOWN = 4
_RECENT_DAYS = 28


@record(frozen=True, eq=False)
class FromBill:
    """A question made of a bill.

    Attributes:
        loaded: the question; its document is the question as JSON.
        futures: its scenarios.
        files: the bill's files.
        asked: how the bill was asked.
        notes: source and dates of the demand, and what was left out.
    """

    loaded: LoadedCommit
    futures: Futures
    files: tuple[File, ...]
    asked: BillAsked
    notes: tuple[str, ...]


def question_from_bill(
    paths: Sequence[str],
    catalog: Catalog,
    *,
    seed: int = 1,
    currency: str | None = None,
    risk: Risk = RISK,
    expires: Mapping[str, date] | None = None,
    mapping: Mapping[str, str] | None = None,
) -> FromBill:
    """Make the question which commitments of one year to buy after the last day of a bill.

    Args:
        paths: files, folders and globs of a bill.
        catalog: prices; machines without a price of a one-year commitment in it take those of the bill's own
            commitments, and are left out and named where it has none.
        seed: of the scenarios.
        currency: rows of this currency only, where the bill has several.
        risk: what is minimised; `SELDOM_LOSES` avoids losses.
        expires: last day of the bill's commitments, by their ids, where their owner knows it.
        mapping: FOCUS column -> column of the bill, for one in columns of its own.

    Raises:
        InputError: the bill cannot be read, has no hours of machines, or none that can be committed to.
    """
    bill = read_use(paths, currency=currency, expires=expires, mapping=mapping)
    kept, pools, left = _pools(bill, catalog)
    by_bill = [pool.name for pool in pools if pool.prices]
    named = ", ".join(Path(path).name for path in paths[:2]) + (" and more" if len(paths) > 2 else "")
    if not pools:
        raise InputError(
            f"{named}: no machine of the bill has a one-year commitment with a price in the catalog, or with a saving "
            f"in the bill: {left}; see `planner catalog list`, or give 'prices' in a question (examples/commit.yaml)"
        )
    start = bill.last + timedelta(days=1)
    count, rows = scenario_size(risk, bill.step_hours)
    index = {bill.keys[number]: pool.name for number, pool in zip(kept, pools, strict=True)}
    question = CommitQuestion(
        version=1, name=f"{named}, {bill.first} to {bill.last}", start=start, horizon_years=1, pools=pools,
        scenarios=Scenarios(count=count, seed=seed),
        commitments=tuple(
            Owned(
                purchase_option=own.option, pool=index[own.key], instances=own.instances,
                expires=own.last_day or start + timedelta(days=366),
            )
            for own in bill.owned if own.key in index
        ),
        options=Options(allow=YEAR_OPTIONS),
        risk=risk,
    )  # fmt: skip
    futures = draw_year(bill.use[:, kept], bill.step_hours, count=count, rows=rows, seed=seed)
    data = question.model_dump_json(exclude_defaults=True).encode()
    loaded = LoadedCommit(question, Document(Path(paths[0]), data, Source(paths[0], "")))
    span = f"demand: {named}, {bill.first} to {bill.last}, by the {'hour' if bill.step_hours == 1 else 'day'}"
    notes = [f"{span}, {len(pools)} kind{'s' * (len(pools) > 1)} of machines"]
    notes += [f"left out, no price of a one-year commitment in the catalog: {left}"] if left else []
    notes += [*_lasting(bill, kept, futures), *bill.notes, *([_of_bill(by_bill)] if by_bill else [])]
    columns = ((column, focus) for focus, column in (mapping or {}).items())
    asked = BillAsked(currency, seed, _options((expires or {}).items()), _options(columns))
    return FromBill(loaded, futures, bill.files, asked, tuple(notes))


def _options(pairs: Iterable[tuple[str, object]]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in pairs)


def _lasting(bill: BillUse, kept: Sequence[int], futures: Futures) -> list[str]:
    """How much of today's use the scenarios have, at what an hour of each pool cost: what every saving rests on."""
    use = bill.use[:, kept]
    usd_per_hour = bill.spend[kept] / np.maximum(use.sum(axis=0), 1e-12)
    now = float(use[-_RECENT_DAYS * 24 // bill.step_hours :].mean(axis=0) @ usd_per_hour) * HOURS_PER_YEAR
    if now <= 0.0:
        return []
    chance = futures.probability
    later = sum(
        float(chance[one.scenario] * (one.weight @ one.demand @ usd_per_hour)) for one in futures.blocks
    )
    return [
        f"demand of the scenarios: {100 * later / now:.0f} % of the last {_RECENT_DAYS} days' in the mean of the year, "
        "as use may grow, shrink or end; if you know better, state it in a question (examples/commit.yaml)"
    ]


def scenario_size(risk: Risk, step_hours: int) -> tuple[int, int]:
    """Return how many scenarios are drawn, and of how many steps each.

    A chance of a loss needs many: of 60 scenarios the search takes purchases that were lucky in them for sure ones.
    """
    if risk.loss_price:
        return LOSS_COUNT, LOSS_HOURS if step_hours == 1 else LOSS_DAYS
    return COUNT, HOURS if step_hours == 1 else DAYS


def _pools(bill: BillUse, catalog: Catalog) -> tuple[list[int], tuple[Pool, ...], str]:
    """Pools that can be committed to, their numbers, and the others in words."""
    kept: list[int] = []
    pools: list[Pool] = []
    left: list[int] = []
    skus: list[int] = []  # may be no machines: named where the bill has nothing else
    total = float(bill.spend.sum())
    for number, key in enumerate(bill.keys):
        pool = _pool(key, bill, catalog) if len(pools) < _MOST_POOLS else None
        if pool is not None:
            kept.append(number)
            pools.append(pool)
        elif bill.spend[number] > 0 or total <= 0:  # else a refund alone, of a machine that it does not name
            (skus if key in bill.skus else left).append(number)
    total -= float(bill.spend[skus].sum()) if kept or left else 0.0
    left = left or ([] if kept else skus)
    share = float(bill.spend[left].sum()) / total if total > 0 else float(np.mean(len(left) > 0))
    words = ", ".join(_words(bill.keys[number]) for number in left[:_SHOWN])
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return kept, tuple(pools), f"{words}{more} ({100 * share:.0f} % of the machines' cost)" if left else ""


def _pool(key: Key, bill: BillUse, catalog: Catalog) -> Pool | None:
    """A pool at the catalog's prices, else at those of its commitments in the bill; None without either."""
    provider, region, kind = key
    pool = Pool(name=f"{kind} {region}", provider=provider, region=region, instance_type=kind)
    if _is_sold(pool, catalog):
        return pool
    own = bill.prices.get(key)
    committed = {} if own is None else {o: usd for o, usd in own.committed.items() if o in YEAR_OPTIONS}
    if own is None or not committed:
        return None
    prices: dict[str, float] = {"on_demand": own.on_demand, **{str(o): usd for o, usd in committed.items()}}
    return Pool.model_validate({"name": pool.name, "provider": provider, "region": region, "prices": prices})


def _of_bill(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return (
        f"prices of {shown}: those of the bill, as its own commitments save today (no offer; a term that the bill does "
        "not state counts as one year)"
    )


def _is_sold(pool: Pool, catalog: Catalog) -> bool:
    """Whether the catalog has an on-demand price of a pool and a one-year commitment for it."""
    if pool.provider not in {manifest.provider for manifest in catalog.manifests}:
        return False
    try:
        prices = pool_prices(catalog, [pool], "")[0]
    except InputError:  # no on-demand price: the caller names it among those left out
        return False
    return any(term.option in YEAR_OPTIONS for term in prices.committed)


def _words(key: Key) -> str:
    return f"{key[2]} in {key[0]}/{key[1]}"
