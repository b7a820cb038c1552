"""A review as a message for a chat: spend, budget, forecast, the three dearest actions, data quality, the full page."""

from __future__ import annotations

from planner.finops.review.model import Figure, Review, Section, Table
from planner.finops.review.parts import money
from planner.render.chat import MOST_CHARACTERS

_TOP = 3
_COLUMNS = {"what", "saves", "once", "basis", "owner"}


def brief_sections(review: Review) -> tuple[Section, ...]:
    """The lines after the verdict, as titled sentences; what the review does not know is left out."""
    parts = [
        ("spend", _against(review), _first_sentence(review, "bridge")),
        ("movers", "Moved most", _movers(review)),
        ("budget", "Budget", _budget(review)),
        ("forecast", "Forecast", _forecast(review)),
        ("contracts", "Contracts", _contracts(review)),
        ("actions", "Actions", _actions(review)),
        ("quality", "Data quality", _first_sentence(review, "quality")),
        ("page", "Full page", (_page(review),)),
    ]
    return tuple(Section(key, title, said) for key, title, said in parts if said)


def _against(review: Review) -> str:
    """`Against September 2026`: the month that the bridge begins in."""
    section = _section(review, "bridge")
    label = next((f.label for f in section.figures if f.key == "bridge_before_money"), "") if section else ""
    return f"Against {label}" if label else "Why it changed"


def _movers(review: Review) -> tuple[str, ...]:
    section = _section(review, "movers")
    table = next((one for one in section.tables if one.key == "movers"), None) if section else None
    if table is None or section is None or section.status == "withheld":
        return ()
    said = []
    for _, row in _top(table):
        amount = row.get("change")
        if isinstance(amount, int | float):
            place = ", ".join(str(row[key]) for key in ("service", "region", "option") if row.get(key))
            said.append(f"{row.get('product', '')} ({place}) {amount:+,.0f}")
    return ("; ".join(said),) if said else ()


def _section(review: Review, key: str) -> Section | None:
    return next((section for section in review.sections if section.key == key), None)


def _first_sentence(review: Review, key: str) -> tuple[str, ...]:
    section = _section(review, key)
    if section is None:
        return ()
    if section.status == "withheld":
        return (f"withheld: {section.reason}",)
    care = f" With care: {section.reason}." if section.status == "flagged" and section.reason else ""
    return tuple(f"{said}{care}" for said in section.sentences[:1])


def _known(review: Review) -> dict[str, Figure]:
    """Figures with a number, by key."""
    found = (figure for section in review.sections for figure in section.figures)
    return {figure.key: figure for figure in found if isinstance(figure.value, int | float)}


def _budget(review: Review) -> tuple[str, ...]:
    """The amount, and what is over or under it: spent of a month that is over, expected of one that runs."""
    known = _known(review).get("overview_budget_money")
    if known is None:
        return ()
    said = "; ".join(part for part in (known.note, known.reason) if part)
    return (f"{money(_number(known), review.currency)} ({known.label.removeprefix('Budget, ')}); {said}",)


def _forecast(review: Review) -> tuple[str, ...]:
    known = _known(review)
    landing = known.get("forecast_landing_money")
    if landing is None:
        return ()
    said = f"{landing.label}: {_words(landing, review.currency)}"
    low, high = known.get("forecast_low_money"), known.get("forecast_high_money")
    if low is not None and high is not None:
        roughly = "roughly " if low.status == "flagged" else ""
        bounds = [_words(one, review.currency) for one in (low, high)]
        said += f" ({roughly}{' to '.join(bounds)})" if bounds[0] != bounds[1] else ""
    return (said,)


def _contracts(review: Review) -> tuple[str, ...]:
    """The spend commitment of which most is not drawn at its pace."""
    gap = _known(review).get("contracts_gap_money")
    return _first_sentence(review, "contracts") if gap is not None and _number(gap) > 0 else ()


def _actions(review: Review) -> tuple[str, ...]:
    section = _section(review, "actions")
    if section is None:
        return ()
    if section.status == "withheld":
        return (f"withheld: {section.reason}",)
    table = next((one for one in section.tables if {column.key for column in one.columns} >= _COLUMNS), None)
    if table is None or not table.rows:
        return section.sentences[:1]
    rows = [f"{number}. {_action(row, review.currency)}" for number, row in _top(table)]
    known = _known(review)
    saves, count = known.get("actions_saves_money"), known.get("actions_count")
    together = ""
    if saves is not None:
        known_only = ", where known," if "where known" in saves.label else ""
        together = f", together at most{known_only} {money(_number(saves), review.currency)} a month"
    many = len(table.rows) if count is None else _number(count)
    return (f"{many:.0f} to consider{together}", *rows)


def _top(table: Table) -> list[tuple[int, dict[str, object]]]:
    names = [column.key for column in table.columns]
    return [
        (number, dict(zip(names, row, strict=True))) for number, row in enumerate(table.rows[:_TOP], start=1)
    ]


def _action(row: dict[str, object], currency: str) -> str:
    owner = f"owner {row['owner']}" if row["owner"] else "no owner known"
    sure = f", {row['confidence']} confidence" if row.get("confidence") else ""
    unknown = row.get("unknown")
    use = f"{money(float(unknown), currency)} a month" if isinstance(unknown, int | float) else ""
    for key, often in (("saves", "a month"), ("once", "once")):
        amount = row[key]
        if isinstance(amount, int | float):
            bound = f"{row['basis']} " if row["basis"] in ("at most", "at least") else ""
            kept = " (saved now, ends with it)" if row["basis"] == "kept" else ""
            more = f" (not known on {use} of it)" if use else ""
            return (
                f"{row['what']}: {bound}{money(float(amount), currency)} {often}{more}{kept}{sure}, {owner}"
            )
    return f"{row['what']}: the bill does not say what it saves{f' on {use}' if use else ''}, {owner}"


def _words(figure: Figure, currency: str) -> str:
    return figure.words or money(_number(figure), currency)


def _number(figure: Figure) -> float:
    assert isinstance(figure.value, int | float)
    return float(figure.value)


def _page(review: Review) -> str:
    options = f"-o html --out review-{review.month}.html"
    command = f"{review.command} {options}"
    if review.command and len(command) <= MOST_CHARACTERS:
        return command
    return f"planner review of the same bill with {options}"
