"""Small builders for figures, tables and sentences of a review."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from planner.finops.review.model import Column, Figure, Section, Table, Unit, Value
from planner.render.currency import with_currency

_ALL_OF_IT = 0.01
_NAMED_RUNS = 5
_NAMED_FILES = 3  # in a command; of more, as a shell expands a pattern, their folders are named

if TYPE_CHECKING:
    from planner.finops.read import Bill
    from planner.finops.review.inputs import Inputs


def figure(inputs: Inputs, key: str, label: str, value: Value, unit: Unit, *, lacking: str = "") -> Figure:
    """A figure that has passed the gate.

    Args:
        inputs: has the gate.
        key: stable name.
        label: for people.
        value: the number; None or NaN is withheld because of `lacking`.
        unit: how it is formatted.
        lacking: why there may be no value.
    """
    status, reason = inputs.gate.status(key)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return Figure(key, label, None, unit, "withheld", lacking or reason or "the bill does not say")
    return Figure(key, label, None if status == "withheld" else value, unit, status, reason)


def flagged(figure: Figure, reason: str) -> Figure:
    """The same figure with a caution, unless it is withheld already."""
    if figure.status == "withheld":
        return figure
    why = f"{figure.reason}; {reason}" if figure.reason else reason
    return replace(figure, status="flagged", reason=why)


def ratio(part: float, whole: float) -> float:
    """Part over whole, NaN where the whole is 0."""
    return part / whole if whole else math.nan


def share(part: float, whole: float) -> float:
    """Part of a whole, 0..1; NaN where refunds leave none: of a whole of 0, a part below 0, a part above the whole.

    A part that is larger by 1 % at most is all of it: what little is beside it was refunded.
    """
    found = part / whole if whole > 0 else math.nan
    return min(found, 1.0) if 0 <= found <= 1 + _ALL_OF_IT else math.nan


def and_words(names: Sequence[str], last: str = " and ") -> str:
    """`team`, `team and env`, `a, b and c`; `last` is what stands before the last of several."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}{last}{names[-1]}"


def text(value: Any, default: str = "") -> str:
    """A cell as text; NULL becomes `default`."""
    return default if value is None or value != value else str(value)


def cells(frame: Any, *names: str) -> Iterator[tuple[Any, ...]]:
    """Rows of some columns of a frame, as plain objects: columns of text are iterated four times as slowly."""
    return zip(*(frame[name].to_numpy(dtype=object) for name in names), strict=True)


def review_command(inputs: Inputs, options: str) -> str:
    """A `planner review` of the same bill and month, to run as written; empty where no text leads to the bill."""
    import shlex

    paths = bill_paths(inputs.bill)
    if not paths:
        return ""
    if inputs.bill.connection:
        reached = shlex.quote(inputs.bill.connection)
        options = f"--engine {inputs.bill.engine.name} --connection {reached} {options}"
    shown = " ".join(shlex.quote(path) for path in paths)
    if any(finding.code == "other_currency" for finding in inputs.bill.findings):
        options = f"--currency {inputs.bill.currency} {options}"
    if (together := inputs.bill.consolidated) is not None:
        options = f"--rates {shlex.quote(together.path)} --in {together.target} {options}"
    options = f"{mapping_options(inputs.bill)}{options}"
    return f"planner review --focus {shown} --month {inputs.month:%Y-%m} {options}"


def mapping_options(bill: Bill) -> str:
    """The file that keeps the bill's columns, else the columns one by one; a blank behind each option."""
    import shlex

    if bill.mapping_file:
        return f"--map-file {shlex.quote(bill.mapping_file)} "
    return "".join(f"--map {shlex.quote(f'{column}={focus}')} " for focus, column in bill.mapping)


def bill_paths(bill: Bill) -> list[str]:
    """The bill's paths as the user named them, of many their folders; tables of a warehouse by name."""
    paths = list(bill.named)
    if len(paths) <= _NAMED_FILES or bill.connection:
        return paths
    return list(dict.fromkeys(str(Path(path).parent) for path in paths))


def run_regions(run: Any) -> tuple[str, ...]:
    """Regions of a row of the KPI `run_cost`, the dearest first; the query names four, of more the rest is counted."""
    named = tuple(text(run[name]) for name in ("region_id", "region_2", "region_3", "region_4"))
    named = tuple(name for name in named if name)
    more = int(run["regions_count"]) - len(named) if named else 0
    return (*named, f"{more} more") if more > 0 else named


def twice_words(inputs: Inputs, of: Collection[str] | None = None) -> str:
    """Runs whose other months are counted twice, in words; empty where there are none.

    Args:
        inputs: of the review.
        of: ids of the runs that are asked for; None: all.
    """
    found = {run: months for run, months in inputs.runs_counted_twice().items() if of is None or run in of}
    if not found:
        return ""
    months = and_words([f"{one:%B %Y}" for one in sorted({one for own in found.values() for one in own})])
    more = f" and {len(found) - _NAMED_RUNS} more" if len(found) > _NAMED_RUNS else ""
    names = ", ".join(sorted(found)[:_NAMED_RUNS])
    runs = "run" if len(found) == 1 else "runs"
    return f"charges of {months} are counted twice, so the cost of {runs} {names}{more} is not known"


def table(key: str, title: str, columns: list[Any], rows: list[Any], note: str = "") -> Table:
    """A table; NaN becomes None. Columns: key, label and unit each, and the place of one that is no cell (`Column`)."""
    cells = tuple(tuple(_cell(v) for v in row) for row in rows)
    return Table(key, title, tuple(_column(*c) for c in columns), cells, note)


def _column(key: str, label: str, unit: Unit, place: Literal["cell", "below", "data"] = "cell") -> Column:
    return Column(key, label, unit, place=place)


def _cell(value: Any) -> Value:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if type(value).__name__.startswith(("int", "uint")) else number


def money(value: float, currency: str) -> str:
    """`12,346 USD`, with cents below 100; without a currency where the bill states none."""
    digits = 2 if abs(value) < 100 else 0
    out = f"{value:,.{digits}f}"
    return with_currency("0" if out.strip("-0.,") == "" else out, currency)


def per_unit(unit: str) -> str:
    """`per hour` of the pricing units `Hours` and `1 Hour`; other units of several words are left as they are."""
    word = unit.strip().removeprefix("1 ")
    if word.isalpha() and len(word) > 3 and (word.istitle() or word.lower().endswith("s")):
        word = word.lower().removesuffix("s")
    return f"per {word}" if word else "per unit"


def percent(value: float, digits: int = 1) -> str:
    """`12.3 %`."""
    return f"{100 * value:,.{digits}f} %"


def signed_percent(value: float) -> str:
    """`+12.3 %`."""
    return f"{100 * value:+,.1f} %"


def nothing(key: str, title: str, why: str) -> Section:
    """A section that has nothing to say, and why."""
    return Section(key, title, (why,))


def withheld(key: str, title: str, reason: str) -> Section:
    """A section that the gate does not let through."""
    return Section(key, title, status="withheld", reason=reason)


def product_name(product: object, instance_type: object, otherwise: object) -> str:
    """`GPU, p5.48xlarge`: the product with the machine it is of, or the id where the bill has no words for it.

    Args:
        product: the first of SkuMeter, ChargeDescription and InstanceType that the bill states.
        instance_type: machine type, where it is known.
        otherwise: what stands in where there is no name, such as the SKU's id.
    """
    name, machine = text(product).strip(), text(instance_type).strip()
    if not name:
        return machine or text(otherwise)
    said = all(_letters(word).removeprefix("standard") in _letters(name) for word in machine.split())
    return name if said else f"{name}, {machine}"


def _letters(name: str) -> str:
    """Letters and digits alone: a meter `ND96isr H100 v5` is the machine `Standard_ND96isr_H100_v5`."""
    return "".join(sign for sign in name.lower() if sign.isalnum())


def thing_name(row: Any) -> str:
    """The name of a thing; SKUs of one service that share a name are told apart by their ids behind it.

    Args:
        row: has `product`, `instance_type`, `sku_id`, `charge_kind` and `skus_of_name`, how many SKUs go by the name.
    """
    sku = text(row.sku_id)
    name = product_name(row.product, row.instance_type, sku or text(row.charge_kind))
    return f"{name} ({sku})" if row.skus_of_name > 1 else name
