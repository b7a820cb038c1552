"""Instance types by name: a row of the catalog's types and of the distinct hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.market.offers import OfferSet


@record(frozen=True)
class Machine:
    """An instance type of the catalog: rows of the type and hardware tables."""

    provider: str
    instance_type: str
    accelerator: str
    accelerators: float
    row: int
    hardware: int


def machine_at(offer_set: OfferSet, row: int) -> Machine:
    """The machine of row `row` of the instance types."""
    types = offer_set.types
    return Machine(
        provider=str(types["provider"][row]),
        instance_type=str(types["instance_type"][row]),
        accelerator=str(types["accelerator"][row]),
        accelerators=float(types["accelerator_count"][row]),
        row=row,
        hardware=int(offer_set.hardware_of_type[row]),
    )


def find_machine(offer_set: OfferSet, name: str, provider: str | None) -> Machine:
    """Find an instance type by its exact name.

    Args:
        offer_set: what can be bought.
        name: instance type, in the provider's spelling.
        provider: provider id, needed where several have a type of that name.

    Raises:
        InputError: there is none, or several; says what was probably meant.
    """
    types = offer_set.types
    hit = types.equals("instance_type", name)
    if provider is not None:
        if not types.equals("provider", provider).any():
            raise InputError(_unknown("--provider", "provider", provider, types.coded("provider").values))
        hit &= types.equals("provider", provider)
    rows = np.flatnonzero(hit)
    if not len(rows):
        known = types if provider is None else types.take(types.equals("provider", provider))
        what = "instance type" if provider is None else f"{provider} instance type"
        raise InputError(_unknown("--instance-type", what, name, set(known["instance_type"])))
    if len(rows) > 1:
        names = ", ".join(sorted({str(types["provider"][row]) for row in rows}))
        raise InputError(
            f"--instance-type {name}: more than one provider has it; add --provider, one of {names}"
        )
    return machine_at(offer_set, int(rows[0]))


def _unknown(option: str, what: str, name: str, known: Sequence[str] | set[str]) -> str:
    import difflib

    lower = {word.lower(): word for word in sorted(known) if word}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    hint = f" (did you mean {lower[close[0]]}?)" if close else "; `planner catalog list` shows them"
    return f"{option}: no {what} called {name!r} in the catalog{hint}"
