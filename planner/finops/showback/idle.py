"""Rules and splits that do nothing in a month: mostly names that are misspelt, which would leave cost unassigned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from planner.finops.read.tag_keys import own_key
from planner.finops.showback.rules import applies, read_tags
from planner.inputs.faults import near

if TYPE_CHECKING:
    from planner.finops.showback.rules import Charge
    from planner.inputs.showback_schema import Rule, ShowbackFile

_SHOWN = 6  # tag keys
_NAMED = 5  # rules


def idle_rules(charges: Sequence[Charge], file: ShowbackFile) -> list[str]:
    """Say of the rules that fit no charge of the month why that may be, whatever rules come before them.

    Those with a tag key that nothing carries come first; many rules may wait for a service or an account.

    Args:
        charges: of the month.
        file: the rules.
    """
    idle = list(enumerate(file.rules, start=1)) if charges else []
    for charge in charges:
        if not idle:
            return []
        tags = read_tags(charge["tags"])
        idle = [(number, rule) for number, rule in idle if not applies(rule, charge, tags)]
    keys = _keys({charge["tags"] for charge in charges})
    found = [(number, rule, _lacking(rule, keys)) for number, rule in idle]
    found.sort(key=lambda one: not one[2])
    said = [
        f"Rule {number} ({_words(rule)}) fits no charge of the month{why}." for number, rule, why in found
    ]
    if (more := len(said) - _NAMED) <= 0:
        return said
    return [*said[:_NAMED], f"{more} more rule{'s fit' if more > 1 else ' fits'} no charge of the month."]


def _words(rule: Rule) -> str:
    own = f"team: {rule.team}" if rule.from_tag is None else f"from_tag: {rule.from_tag}"
    return "; ".join([own, *(f"{field}: {', '.join(values)}" for field, values in rule.when.items())])


def _lacking(rule: Rule, keys: Sequence[str]) -> str:
    """Which of a rule's tag keys no charge carries, with those there are; empty where all are there."""
    asked = [rule.from_tag or "", *(name[4:] for name in rule.when if name.startswith("tag:"))]
    known = {own_key(key) for key in keys}
    lost = next((key for key in asked if key and own_key(key) not in known), "")
    if not lost:
        return ""
    close = near(lost, keys)
    hint = f" (did you mean '{close}'?)" if close else ""
    listed = ", ".join(keys[:_SHOWN]) + (", ..." if len(keys) > _SHOWN else "")
    return f": none carries the tag {lost!r}{hint}; there are {listed}" if keys else ": none carries a tag"


def _keys(texts: Iterable[str]) -> list[str]:
    """Tag keys as the charges spell them, sorted."""
    found: set[str] = set()
    for text in texts:
        if read_tags(text):  # which says whether it is JSON
            found.update(map(str, json.loads(text)))
    return sorted(found)
