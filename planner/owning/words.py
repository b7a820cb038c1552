"""How ways, money and conditions of an answer are said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.owning.model import COLOCATION, OWN_SITE
from planner.render.numbers import percent
from planner.render.precision import dollars, dollars_known, known_places

if TYPE_CHECKING:
    from planner.owning.answer import TcoAnswer
    from planner.owning.model import Pair, Rent, Spread

_NAMES = {
    OWN_SITE: "own rooms",
    COLOCATION: "colocation",
    "on_demand": "on demand",
    "spot": "spot",
    "reserved_1y": "reserved 1y",
    "reserved_3y": "reserved 3y",
    "savings_plan_1y": "savings plan 1y",
    "savings_plan_3y": "savings plan 3y",
    "cud_1y": "committed 1y",
    "cud_3y": "committed 3y",
    "capacity_block": "blocks",
}
_WAYS = {
    OWN_SITE: "owning in own rooms", COLOCATION: "owning in a colocation", "on_demand": "renting on demand",
    "spot": "renting on spot", "capacity_block": "renting in capacity blocks",
}  # fmt: skip
_MONEY_WIDTH = 0.1  # of an amount over a life: three digits


def way(name: str) -> str:
    """What a way is called in a sentence: `owning in own rooms`, `renting on spot`."""
    return _WAYS.get(name) or f"renting {short(name)}"


def short(name: str) -> str:
    """What a way is called in a table: `own rooms`, `spot`, `reserved 3y`."""
    return _NAMES.get(name, name.replace("_", " "))


def per_hour(spread: Spread) -> str:
    """Cost per useful hour in the digits that its interval leaves, with the interval."""
    half = (spread.high - spread.low) / 2.0
    if half <= 0.0:
        return dollars(spread.value, known_places(spread.value, 0.0))
    return f"{dollars_known(spread.value, half)} ({interval(spread)})"


def cell(spread: Spread) -> str:
    """Cost per useful hour with its interval, for a table: `2.7 (0.5 to 7.3)`."""
    return per_hour(spread).replace("$", "")


def interval(spread: Spread) -> str:
    """`$2.40 to $8.30`, to the decimals of the value; nothing where both ends are the value."""
    half = (spread.high - spread.low) / 2.0
    if half <= 0.0:
        return ""
    places = known_places(spread.value, half)
    if abs(spread.value) >= 1.0:
        places = min(places, 2)
    return f"{dollars(spread.low, places)} to {dollars(spread.high, places)}"


def money(value: float) -> str:
    """An amount over the whole life, which is never known to the dollar."""
    return dollars(value, min(known_places(value, abs(value) * _MONEY_WIDTH), 0))


def month(pair: Pair, months: int) -> str:
    """When owning has cost no more in cash; `resale`: in the last month, by what the machine is sold for."""
    if pair.break_even_month is None:
        return "never"
    if pair.break_even_month == months:
        return f"{months} (resale)"
    return f"{pair.break_even_month}"


def use(pair: Pair) -> str:
    """Shares of the time busy at which owning costs less: `always`, `never`, `from 66 %`."""
    if pair.break_even_utilisation_ratio is None:
        return pair.holds
    word = {"from": "from", "up_to": "up to"}[pair.holds]
    return f"{word} {percent(pair.break_even_utilisation_ratio, 0)}"


def rented(rent: Rent) -> str:
    """What is rented: provider, region and type of its offer."""
    parts = rent.offer_id.split("/")
    return f"{parts[0]}/{parts[1]} {parts[3]}" if len(parts) == 6 else rent.offer_id


def lasting(answer: TcoAnswer) -> str:
    """The machine's life: `4 years`, `30 months`."""
    years, rest = divmod(answer.figures.months, 12)
    if rest:
        return f"{answer.figures.months} months"
    return "1 year" if years == 1 else f"{years} years"
