"""What `planner verify --bill` gives to the judge of a commitment plan: the bill asked again as the answer says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.judge.commits.figures import CommitMemory
    from planner.judge.document import Node


def memory_of_bill(saved: Any, bills: Sequence[str]) -> CommitMemory:
    """Make the question of an answer from its bill again.

    Rows are read and scenarios drawn by the code that `planner commit --from-focus` uses; prices, use, costs, risk and
    what follows from them are the judge's own.

    Args:
        saved: the answer; earlier ones do not say how the bill was asked, and the usual way is taken.
        bills: files, folders and globs of the bill.

    Raises:
        InputError: the bill cannot be read.
    """
    from catalogs.store.load import load_catalog
    from planner.commitments.from_bill import RISK, SELDOM_LOSES, question_from_bill
    from planner.commitments.stated_ends import parse_ends
    from planner.finops.read.mapping import read_mapping
    from planner.judge.commits.demand import Futures, OfBill, Year
    from planner.judge.commits.figures import CommitMemory
    from planner.judge.document import Node
    from planner.judge.judge import catalog_of

    answer = Node(saved)
    catalog = catalog_of(answer) if len(answer["catalog"]) else load_catalog()
    currency, seed, expires, pairs = _asked(answer)
    seldom = "loss" in answer.keys() and answer["loss"]["price"].number() > 0  # noqa: SIM118 -- a node
    made = question_from_bill(
        bills, catalog, seed=seed, currency=currency, risk=SELDOM_LOSES if seldom else RISK,
        expires=parse_ends(expires), mapping=read_mapping(pairs, None),
    )  # fmt: skip
    years = (Year(one.scenario, one.year, one.hour, one.weight, one.demand) for one in made.futures.blocks)
    hashes = tuple(one.sha256 for one in made.files)
    return CommitMemory(made.loaded, catalog, OfBill(Futures(made.futures.probability, tuple(years)), hashes))


def _asked(answer: Node) -> tuple[str | None, int, list[str], list[str]]:
    """Currency, seed, stated ends and columns."""
    if "bill" not in answer.keys() or answer["bill"].is_null:  # noqa: SIM118 -- a node
        return None, 1, [], []
    asked = answer["bill"]
    currency = None if asked["currency"].is_null else asked["currency"].text()
    pairs = [one.text() for one in asked["mapping"]] if "mapping" in asked.keys() else []  # noqa: SIM118 -- a node
    return currency, asked["seed"].count(), [one.text() for one in asked["expires"]], pairs
