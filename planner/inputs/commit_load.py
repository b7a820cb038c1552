"""From a YAML file to a `CommitQuestion`, or to one error that lists every fault with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.inputs.documents import Document, load_document
from planner.inputs.faults import Fault, near
from planner.inputs.faults import Path as FaultPath
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.commit_schema import CommitQuestion, Owned

MOST_GROWTH = 100


@record(frozen=True)
class LoadedCommit:
    """A valid question and its file."""

    question: CommitQuestion
    document: Document

    def error(self, faults: Iterable[Fault]) -> InputError:
        """Return the error for faults found later, with their places in the file."""
        return self.document.source.error(faults)

    def file(self, name: str) -> Path:
        """Return a file named in the question; relative paths start from the question's folder."""
        return self.document.path.parent / name


def load_commit(path: Path) -> LoadedCommit:
    """Load and validate a commitment file.

    Raises:
        InputError: lists all faults in the order of their lines.
    """
    from planner.inputs.commit_schema import CommitQuestion

    return LoadedCommit(*load_document(path, CommitQuestion, _faults))


def _faults(question: CommitQuestion) -> Iterator[Fault]:
    """The rules that join several fields."""
    names = [pool.name for pool in question.pools]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Fault(
                ("pools", number, "name"), f"a pool {name!r} is already listed above; names must differ"
            )
    for number, pool in enumerate(question.pools):
        if pool.instance_type is None and "on_demand" not in pool.prices:
            yield Fault(("pools", number), "give 'instance_type', or 'prices' with 'on_demand'")
    growth = question.scenarios.growth
    if not growth.low <= growth.likely <= growth.high:
        yield Fault(("scenarios", "growth"), "low, likely and high must rise in this order")
    if growth.high > MOST_GROWTH:
        yield Fault(("scenarios", "growth"), f"more than {MOST_GROWTH} times a year is not a forecast")
    pool_names: list[tuple[FaultPath, str]] = [
        (("demand", "planned", n, "pool"), plan.pool) for n, plan in enumerate(question.demand.planned)
    ]
    pool_names += [(("options", "max_instances", name), name) for name in question.options.max_instances]
    pool_names += [
        (("commitments", n, "pool"), commitment.pool)
        for n, commitment in enumerate(question.commitments)
        if commitment.pool
    ]
    for path, name in pool_names:
        if name not in names:
            yield Fault(path, f"no pool is called {name!r}; there are {', '.join(names)}", near(name, names))
    for number, plan in enumerate(question.demand.planned):
        if plan.end < plan.start:
            yield Fault(("demand", "planned", number, "end"), f"is before the start, {plan.start}")
    for number, commitment in enumerate(question.commitments):
        yield from _owned_faults(question, number, commitment)
    if question.demand.file is None and not question.demand.planned and question.scenarios.file is None:
        yield Fault(
            ("demand",), "give a history ('demand.file'), plans ('demand.planned') or 'scenarios.file'"
        )


def _owned_faults(question: CommitQuestion, number: int, owned: Owned) -> Iterator[Fault]:
    path = ("commitments", number)
    providers = sorted({pool.provider for pool in question.pools})
    if owned.purchase_option.startswith("savings_plan"):
        if owned.usd_per_hour is None or owned.provider is None:
            yield Fault(path, "a savings plan needs 'provider' and 'usd_per_hour'")
        elif owned.provider not in providers:
            text = f"no pool is of provider {owned.provider!r}; there are {', '.join(providers)}"
            yield Fault((*path, "provider"), text, near(owned.provider, providers))
    elif owned.instances is None or owned.pool is None:
        yield Fault(path, "a reservation needs 'pool' and 'instances'")
