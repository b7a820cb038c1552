"""Rules applied to charges: the first that fits names the team."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.finops.read.tag_keys import bare_key, known_spelling, own_key

if TYPE_CHECKING:
    from planner.inputs.showback_schema import Rule, ShowbackFile

Charge = Mapping[str, str]
"""Fields of a charge: those of `planner.inputs.showback_load.FIELDS` and `tags` (JSON)."""


@lru_cache(maxsize=16384)
def read_tags(text: str) -> Mapping[str, str]:
    """Tags by own key; of two spellings in one charge the first with a value counts, `team` before `user:team`."""
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    out: dict[str, str] = {}
    pairs = found.items() if isinstance(found, dict) else ()
    for key, value in sorted(pairs, key=lambda pair: bare_key(pair[0]) != pair[0].casefold()):
        words = "" if value is None else str(value).strip()
        if words:
            out.setdefault(own_key(str(key)), words)
    return out


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(translate(text.casefold()))


def fits(values: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Whether one of a charge's words is one of the values, with * and ?."""
    return any(_pattern(value).match(word.casefold()) for value in values for word in words if word)


def team_of(charge: Charge, file: ShowbackFile) -> str:
    """The team of a charge; the file's `unassigned` where no rule fits."""
    tags = read_tags(charge["tags"])
    return next((team for rule in file.rules if (team := applies(rule, charge, tags))), file.unassigned)


def applies(rule: Rule, charge: Charge, tags: Mapping[str, str]) -> str:
    """The team that a rule gives to a charge; empty where it does not fit."""
    team = rule.team if rule.from_tag is None else _from_tag(rule, tags)
    if team and all(fits(values, _words(charge, tags, field)) for field, values in rule.when.items()):
        return team
    return ""


def _from_tag(rule: Rule, tags: Mapping[str, str]) -> str:
    value = tags.get(own_key(rule.from_tag or ""), "")
    return rule.rename.get(known_spelling(value, rule.rename), value)


def rule_names(file: ShowbackFile) -> list[str]:
    """Teams that the file names itself."""
    named = [rule.team for rule in file.rules if rule.team]
    named += [team for rule in file.rules for team in rule.rename.values()]
    named += [team for split in file.split for team in (split.team, *split.weights)]
    return [*dict.fromkeys([*named, file.unassigned])]


def _words(charge: Charge, tags: Mapping[str, str], field: str) -> tuple[str, ...]:
    if field.startswith("tag:"):
        return (tags.get(own_key(field.removeprefix("tag:")), ""),)
    return (charge["account"], charge["account_name"]) if field == "account" else (charge[field],)
