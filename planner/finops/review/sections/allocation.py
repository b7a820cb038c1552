"""Whose cost is it?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any
from unicodedata import category, normalize

from planner.finops.engine.registry import WAREHOUSES
from planner.finops.read.tag_keys import TagKeys, keys_between, listed
from planner.finops.review.inputs import MAX_TAGS, Inputs, month_end, month_name
from planner.finops.review.model import Chart, Figure, Section
from planner.finops.review.parts import and_words, figure, money, percent, share, table, text, withheld

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

TITLE = "Whose cost is it?"
TOP = 15
NOBODY = "(no tag)"
_NOTHING = "the month has no cost that can carry tags"
_REFUNDED = "refunds leave too little taggable cost for shares"
_BELOW = "Refunds of the month exceed its charges that can carry tags, so no shares are shown."
_MERGED = 3  # values with several spellings named
# FinOps maturity model: allocated about 50 % crawl, 80 % walk, more than 90 % run
_LEVELS = ((0.9, "run"), (0.8, "walk"), (0.5, "crawl"))


def build(inputs: Inputs) -> Section:
    """Coverage by the mandatory tags and cost by the first of them."""
    status, reason = inputs.gate.status("allocation_ratio")
    if status == "withheld":
        remark = inputs.tags_remark
        return withheld("allocation", TITLE, f"{reason}. {remark}" if remark else reason)
    frame = inputs.ask("allocation")
    own = inputs.of_month(frame)
    comparable = inputs.before is not None and inputs.gate.status("allocation_before_ratio")[0] != "withheld"
    before = inputs.of_month(frame, inputs.before) if comparable else own.iloc[:0]
    taggable, tagged = float(own["taggable_cost"].sum()), float(own["tagged_cost"].sum())
    tags = inputs.tags[:MAX_TAGS]
    lacking = _REFUNDED if taggable else _NOTHING
    figures: list[Figure] = [
        figure(inputs, "allocation_ratio", f"Cost with {and_words(tags)}", share(tagged, taggable), "ratio",
               lacking=lacking),
        figure(inputs, "allocation_before_ratio", "The month before",
               share(float(before["tagged_cost"].sum()), float(before["taggable_cost"].sum())), "ratio",
               lacking="there is no month before" if inputs.before is None else _REFUNDED if len(before) else ""),
        figure(inputs, "allocation_untagged_money", "Cost without all of them", taggable - tagged, "money"),
    ]  # fmt: skip
    for number, tag in enumerate(tags, 1):
        tagged_one = share(float(own[f"tagged_{number}_cost"].sum()), taggable)
        figures.append(
            figure(
                inputs,
                f"allocation_tag_{number}_ratio",
                f"Cost with {tag}",
                tagged_one,
                "ratio",
                lacking=lacking,
            )
        )
    # shares of a part of a month say something, its sums beside those of a whole one do not
    has_sums = (
        comparable and inputs.gate.status("spend_change_ratio")[0] != "withheld" and not inputs.left_out
    )
    rows = _owners(own, before if has_sums else None)
    shown = rows[:TOP]
    allocation = table(
        "allocation", f"Cost by {tags[0]}", [("owner", tags[0], "text"), ("cost", "Cost", "money"),
        ("before", "Month before", "money"), ("change", "Change", "money"), ("share", "Share", "ratio"),
        ("tagged", "With all tags", "ratio")], shown,
        f"{len(rows) - TOP:,} more values are not listed." if len(rows) > TOP else "",
    )  # fmt: skip
    chart = Chart(
        "allocation", f"Cost by {tags[0]}", "bars", tuple(row[0] for row in shown),
        (("cost", tuple(row[1] for row in shown)),), "money",
        _largest(shown), drawn_only=True,
    )  # fmt: skip
    notes = (
        _gone(inputs, own),
        _came(inputs, own, before),
        *_merged(frame, tags),
        *_look_alikes(frame, tags, _rule(inputs.bill)),
    )
    said = " ".join(filter(None, (_sentence(inputs, tagged, taggable), inputs.tags_remark, *notes)))
    charts = (chart,) if shown else ()
    return Section("allocation", TITLE, (said,), tuple(figures), (allocation,), charts, status, reason)


def owner_names(inputs: Inputs) -> dict[str, str]:
    """Each spelling of an owner in the bill, and the name under which the review shows its cost."""
    frame = inputs.ask("allocation")
    return dict(zip(map(text, frame["spelling_1"]), map(text, frame["value_1"]), strict=True))


def _gone(inputs: Inputs, own: Any) -> str:
    """Which tags other months have and this one lacks, with the keys of its charges: tags are renamed."""
    keys = inputs.answers.get("tag_keys", TagKeys(None)).present or ()
    numbered = enumerate(inputs.tags[:MAX_TAGS], 1)
    gone = [tag for number, tag in numbered if tag in keys and not own[f"tagged_{number}_cost"].any()]
    if not gone:
        return ""
    shown = listed(keys_between(inputs.bill, inputs.month, inputs.end))
    there = f"the keys of its charges are {shown} (--tags names those to use)" if shown else "none has tags"
    return f"Other months carry the tag {' and '.join(gone)}, {month_name(inputs.month)} does not: {there}."


def _came(inputs: Inputs, own: Any, before: Any) -> str:
    """Which tags the month has and the one compared with lacks: by them, all cost moved from one key to another."""
    numbered = enumerate(inputs.tags[:MAX_TAGS], 1)
    sums = [(tag, f"tagged_{number}_cost") for number, tag in numbered]
    came = [tag for tag, name in sums if own[name].any() and not before[name].any()]
    if inputs.before is None or not len(before) or not came:
        return ""
    shown = listed(keys_between(inputs.bill, inputs.before, month_end(inputs.before)))
    there = f"the keys of its charges are {shown}" if shown else "none of its charges has tags"
    name, tags = month_name(inputs.before), " and ".join(came)
    return f"{name} does not carry the tag {tags}: {there}; changes by it say nothing."


def _merged(frame: Any, tags: tuple[str, ...]) -> list[str]:
    """Which spellings of the first two tags' values are counted as one."""
    out = []
    for number, tag in enumerate(tags[:2], 1):
        by_name: dict[str, set[str]] = {}
        for name, spelling in zip(frame[f"value_{number}"], frame[f"spelling_{number}"], strict=True):
            if text(name) and name != spelling:
                by_name.setdefault(text(name), set()).add(text(spelling))
        if not by_name:
            continue
        named = [
            f"{name} is also spelled {', '.join(sorted(others))}" for name, others in sorted(by_name.items())
        ]
        more = f"; and {len(named) - _MERGED} more" if len(named) > _MERGED else ""
        out.append(
            f"Values of {tag} that differ in spelling only count as one: {'; '.join(named[:_MERGED])}{more} "
            "(--exact-tags keeps them apart)."
        )
    return out


def _look_alikes(frame: Any, tags: tuple[str, ...], rule: str) -> list[str]:
    """Values of the first two tags that only a machine tells apart: composed letters, marks without a width."""
    out = []
    for number, tag in enumerate(tags[:2], 1):
        alike: dict[str, set[str]] = {}
        for name in map(text, frame[f"value_{number}"]):
            alike.setdefault(_plain(normalize("NFKC", name)), set()).add(name)
        several = [own for _, own in sorted(alike.items()) if len(own) > 1]
        names = [min(own) for own in several]
        if names:
            more = f" and {len(names) - _MERGED} more" if len(names) > _MERGED else ""
            out.append(
                f"Values of {tag} that look like {', '.join(names[:_MERGED])}{more} differ in invisible or composed "
                f"characters and are counted apart: write them alike{rule if any(map(_are_one, several)) else ''}."
            )
    return out


def _rule(bill: Bill) -> str:
    """What counts values that look alike as one; nothing for bills whose tags are not read from a column as it is."""
    if bill.engine.name in WAREHOUSES or any(source.adapter for source in bill.sources):
        return ""
    return f", or count them as one with --map 'plain({dict(bill.mapping).get('Tags', 'Tags')})=Tags'"


def _plain(name: str) -> str:
    return "".join(sign for sign in name if category(sign) != "Cf")


def _are_one(names: Collection[str]) -> bool:
    """Whether the rule of `read.mapping` makes some of them one."""
    return len({normalize("NFC", _plain(name)) for name in names}) < len(names)


def _largest(rows: Sequence[tuple[Any, ...]]) -> str:
    if not rows:
        return "No cost can carry tags."
    return f"{rows[0][0]} has the largest share." if rows[0][1] > 0 else "More was refunded than charged."


def _owners(own: Any, before: Any | None) -> list[tuple[Any, ...]]:
    total = float(own["taggable_cost"].sum())
    sums: dict[str, list[float]] = {}
    for frame, place in ((own, 0), *([] if before is None else [(before, 2)])):
        for value, cost, full in zip(
            frame["value_1"], frame["taggable_cost"], frame["tagged_cost"], strict=True
        ):
            entry = sums.setdefault(text(value, NOBODY), [0.0, 0.0, 0.0, 0.0])
            entry[place] += float(cost)
            entry[place + 1] += float(full)
    ranked = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        (name, cost, *((None, None) if before is None else (old, cost - old)), share(cost, total), share(full, cost))
        for name, (cost, full, old, _) in ranked
    ]  # fmt: skip


def _sentence(inputs: Inputs, tagged: float, taggable: float) -> str:
    if taggable <= 0:
        return "No cost of the month can carry tags." if not taggable else _BELOW
    there = share(tagged, taggable)
    rest = money(taggable - tagged, inputs.bill.currency)
    if there != there:
        with_tags = money(tagged, inputs.bill.currency)
        return f"Cost with {and_words(inputs.tags)} is {with_tags}, cost without them {rest}: {_REFUNDED}."
    level = next((name for least, name in _LEVELS if there >= least), "")
    grade = (
        f', the level "{level}" of the FinOps maturity model'
        if level
        else ', below the lowest level ("crawl", half) of the FinOps maturity model'
    )
    lacks = f"; {rest} does not" if money(0.0, inputs.bill.currency) != rest else ""
    return f"{percent(there)} of the cost that can be tagged carries {and_words(inputs.tags)}{grade}{lacks}."
