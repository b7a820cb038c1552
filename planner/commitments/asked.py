"""What a commitment question is asked about: a file, or a bill; with the prices that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.commitments.advise import needs_catalog
from planner.inputs.commit_load import load_commit
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from catalogs.tables.model import Catalog
    from planner.commitments.from_bill import FromBill
    from planner.inputs.commit_load import LoadedCommit


@record(frozen=True, eq=False)
class Asked:
    """A question, its prices (None where it states all of them), and the bill it was made of, if any."""

    loaded: LoadedCommit
    catalog: Catalog | None
    from_bill: FromBill | None = None


def ask_file(path: Path, as_of: date | None, catalog_dir: Path | None = None) -> Asked:
    """Read a question.

    Args:
        path: a YAML file.
        as_of: use the newest prices up to this day.
        catalog_dir: folder of the catalog; default the configured one.

    Raises:
        InputError: the file is wrong.
        CatalogError: the catalog cannot be used.
    """
    from catalogs.store.load import load_catalog

    loaded = load_commit(path)
    return Asked(loaded, load_catalog(catalog_dir, as_of=as_of) if needs_catalog(loaded) else None)


def ask_bill(
    bills: Sequence[str],
    as_of: date | None,
    catalog_dir: Path | None = None,
    *,
    currency: str | None = None,
    seed: int | None = None,
    avoid_loss: bool = False,
    expires: Mapping[str, date] | None = None,
    mapping: Mapping[str, str] | None = None,
) -> Asked:
    """Make a question of a bill.

    Args:
        bills: files, folders and globs.
        as_of: use the newest prices up to this day.
        catalog_dir: folder of the catalog; default the configured one.
        currency: rows of this currency only.
        seed: of the scenarios; default 1.
        avoid_loss: count the chance of a loss too.
        expires: last day of the bill's commitments, by their ids, where their owner knows it.
        mapping: FOCUS column -> column of the bill, for one in columns of its own.

    Raises:
        InputError: the bill cannot be read, or nothing of it can be committed to.
        CatalogError: the catalog cannot be used.
    """
    from catalogs.store.load import load_catalog
    from planner.commitments.from_bill import RISK, SELDOM_LOSES, question_from_bill

    catalog = load_catalog(catalog_dir, as_of=as_of)
    risk = SELDOM_LOSES if avoid_loss else RISK
    made = question_from_bill(
        bills, catalog, seed=1 if seed is None else seed, currency=currency, risk=risk, expires=expires,
        mapping=mapping,
    )  # fmt: skip
    return Asked(made.loaded, catalog, made)
