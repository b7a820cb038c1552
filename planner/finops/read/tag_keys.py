"""Tags as a bill spells them: the key `team` asked for, `Team` or `Owner` in the bill; values spelled in several ways.

`Cost-Center`, `cost_center` and `CostCenter` are one key, `env` and `environment` too. `owner` counts as `team` unless
the bill shows that it names something else. Which names count so is in `planner/finops/data/tag_names.csv`.

`ML-Platform`, `ml_platform` and `ml platform` are one value. The rule is that of the KPI `allocation`, which applies it
inside the engine; a test holds the two together.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.read.select import text
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

_SHOWN = 8
_SAMPLE = 20_000  # charges whose keys are listed
# Prefixes of keys that are the user's own. AWS: docs.aws.amazon.com/cur/latest/userguide/resource-tags-columns.html
# (resourceTags/user:team); the others where labels were flattened, as in labels.team. `aws:` is that of
# AWS's own keys.
_PREFIXES = ("user:", "labels.", "labels/", "label:", "tags.", "tags/", "tag:")
RUN_TAGS = ("planner_run_id", "run_id")
"""Keys that name runs, the first that a bill has counts: that of exported plans (`planner.export.names.RUN_TAG`, which
the reader of bills does not import), then the usual one."""


@record(frozen=True)
class TagKeys:
    """Keys of a bill's tags.

    Attributes:
        present: those of the charges, of a large bill those of a sample, the most frequent first; None where the engine
            cannot list them.
        instead: other names of a tag that count as it in this bill, by the tag's own key: `team` -> `Owner`.
        apart: other names that name something else in this bill, in the same way.
    """

    present: tuple[str, ...] | None
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    apart: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def spelled(self, asked: str) -> str:
        """The key as the bill spells it.

        Itself where it is there, else the most frequent that differs in case only, else the most frequent other
        spelling (`user:team`), else another name of the tag (`Owner`).
        """
        keys = self.present or ()
        if asked in keys:
            return asked
        alike = [key for key in keys if own_key(key) == own_key(asked)]
        alike += self.instead.get(own_key(asked), ())
        return next((key for key in alike if key.casefold() == asked.casefold()), (*alike, asked)[0])

    def spellings(self, key: str) -> tuple[str, ...]:
        """The key, other spellings of it and other names of the tag, the most frequent first: all of them are one."""
        return (*self._alike(key), *self.instead.get(own_key(key), ()))

    def _alike(self, key: str) -> tuple[str, ...]:
        return (key, *(one for one in self.present or () if one != key and own_key(one) == own_key(key)))

    def merged(self, asked: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The spellings that count of each key that the bill spells in several ways.

        Where several spellings are asked for, each is itself alone; another name that is asked for is a tag of its own.
        """
        owns = {own_key(key) for key in asked}
        found = {
            key: (
                *self._alike(key),
                *(one for one in self.instead.get(own_key(key), ()) if own_key(one) not in owns),
            )
            for key in asked
        }
        return {key: own for key, own in found.items() if len(own) > 1 and not {*own[1:]} & {*asked}}

    def run_key(self, asked: str | None = None) -> str:
        """The key that names runs: the one asked for, else the first of `RUN_TAGS` that a charge carries."""
        if asked is not None:
            return self.spelled(asked)
        spelled = [self.spelled(key) for key in RUN_TAGS]
        return next((key for key in spelled if key in (self.present or ())), RUN_TAGS[-1])

    def runs_remark(self, taken: str) -> str:
        """What to say where charges name runs by the other usual key too: these are runs that are not shown."""
        others = [key for key in map(self.spelled, RUN_TAGS) if key != taken and key in (self.present or ())]
        return (
            f"Runs are identified by the tag {taken}; --run-tag {others[0]} shows those of {others[0]}."
            if others
            else ""
        )

    def remark(self, asked: Sequence[str], merged: Mapping[str, Sequence[str]]) -> str:
        """What to say of mandatory keys that no charge carries, and of keys that are spelled in several ways.

        Args:
            asked: mandatory ones, as they were asked for.
            merged: of `merged`, what counts as one; other spellings do not.
        """
        if self.present is None:
            return ""
        as_asked = {self.spelled(key): key for key in reversed(asked)}
        keys = list(dict.fromkeys(map(self.spelled, asked)))
        out = []
        if lacking := [key for key in keys if key not in self.present]:
            shown = listed(self.present)
            present = f"the keys present are {shown}" if shown else "no charge has tags"
            out.append(f"No charge carries the tag {' or '.join(lacking)}; {present}.")
        out += [spelling_remark(self._alike(key), merged.get(key, ())) for key in keys]
        out += [
            self.names_remark(as_asked[key], merged.get(key, ()), f"; --exact-tags counts {key} alone")
            for key in keys
        ]
        return " ".join(filter(None, out))

    def names_remark(self, asked: str, merged: Sequence[str] | None = None, hint: str = "") -> str:
        """What to say of a tag that goes by another name in the bill; empty of any other.

        Args:
            asked: its key as it was asked for.
            merged: names that count as it; None: all that may.
            hint: how to count without them.
        """
        key = self.spelled(asked)
        own = own_key(key)
        if taken := [one for one in self.instead.get(own, ()) if merged is None or one in merged]:
            count = "count" if len(taken) > 1 else "counts"
            return f"{', '.join(taken)} {count} as {key} where a charge has none{hint}."
        if others := self.apart.get(own, ()):
            names = (
                "name something else than {0} and are"
                if len(others) > 1
                else "names something else than {0} and is"
            )
            return f"{', '.join(others)} {names.format(key)} not counted as it: ask for {others[0]} to count by it."
        if key in self.instead.get(own_key(asked), ()):
            return f"No charge carries the tag {asked}: {key} counts in its place."
        return ""


def listed(keys: Sequence[str]) -> str:
    """The first keys, in words."""
    return ", ".join(keys[:_SHOWN]) + (", ..." if len(keys) > _SHOWN else "")


@lru_cache(maxsize=4096)
def own_key(key: str) -> str:
    """A key without what spellings differ in.

    That is case, dashes, underscores, blanks and points, the prefix of a key that is the user's own, and a name that is
    the same word: `user:Cost-Center` is `costcenter`, `Environment` is `env`.
    """
    plain = re.sub(r"[-_ .]", "", bare_key(key)) or key
    return next((tag for tag, name, counts in _names() if name == plain and counts == "same"), plain)


def bare_key(key: str) -> str:
    """A key without case, and without the prefix of a key that is the user's own: `user:Team` is `team`."""
    folded = key.casefold()
    return next(
        (folded[len(prefix) :] for prefix in _PREFIXES if folded.startswith(prefix) and folded != prefix),
        folded,
    )


@lru_cache(maxsize=1)
def _names() -> tuple[tuple[str, str, str], ...]:
    """Tag, other name of it, and how that counts: `same` or `instead`; names as of `own_key`."""
    with (Path(__file__).resolve().parents[1] / "data" / "tag_names.csv").open(encoding="utf-8") as file:
        return tuple((row["tag"], row["name"], row["counts"]) for row in csv.DictReader(file))


def spelling_remark(spellings: Sequence[str], merged: Sequence[str]) -> str:
    """What to say of a tag's key that a bill spells in several ways; nothing of one spelling.

    Args:
        spellings: all of them, the key first.
        merged: those that count as one.
    """
    key, *others = spellings
    apart = [one for one in others if one not in merged]
    out = []
    if alike := [one for one in others if one in merged]:
        first = f"{key} first where a charge has several; --exact-tags counts {key} alone"
        out.append(f"The tag {key} is also spelled {', '.join(alike)}; they count as one ({first}).")
    if apart:
        out.append(
            f"The tag {key} is also spelled {', '.join(apart)}; those charges are not counted with it."
        )
    return " ".join(out)


def tag_keys(bill: Bill, *, exact: bool = False) -> TagKeys:
    """List the keys of the bill's tags; of a large bill those of a sample of its charges.

    Args:
        bill: an open bill.
        exact: no name counts as another (`owner` as `team`).
    """
    if not isinstance(bill.engine, DuckDbEngine):
        return TagKeys(None)
    present = _keys(bill.engine, bill.tag_texts)
    instead, apart = dict[str, tuple[str, ...]](), dict[str, tuple[str, ...]]()
    for tag, name, counts in () if exact else _names():
        others = tuple(key for key in present if own_key(key) == name)
        if counts == "instead" and others:
            own = tuple(key for key in present if own_key(key) == tag)
            (instead if _name_the_same(bill.engine, bill.tag_texts, own, others) else apart)[tag] = others
    return TagKeys(present, instead, apart)


def keys_between(bill: Bill, start: date, end: date) -> tuple[str, ...]:
    """The keys of tags of some charges of these days, the most frequent first; none where the engine cannot say."""
    if not isinstance(bill.engine, DuckDbEngine):
        return ()
    days = f"ChargePeriodStart >= DATE '{start}' AND ChargePeriodStart < DATE '{end}'"
    return _keys(bill.engine, f"SELECT Tags AS tag_text FROM focus WHERE {days} LIMIT {_SAMPLE}")


def _keys(engine: DuckDbEngine, texts: str) -> tuple[str, ...]:
    rows = engine.rows(
        "SELECT tag_key, COUNT(*) AS n FROM ("
        "SELECT UNNEST(CASE WHEN JSON_VALID(tag_text) THEN JSON_KEYS(tag_text) END) AS tag_key "
        f"FROM ({texts}) AS texts) AS keys GROUP BY tag_key ORDER BY n DESC, tag_key"
    )
    return tuple(str(key) for key, _ in rows)


def _name_the_same(engine: DuckDbEngine, texts: str, keys: Sequence[str], others: Sequence[str]) -> bool:
    """Whether other keys name what a tag's keys name.

    They do unless most of their values are e-mail addresses, or most values beside one of the tag differ from it. How
    many charges have a value does not matter, so that a cube, which sums charges up, shows the same.
    """

    def first(names: Sequence[str]) -> str:
        paths = (text(f'$."{name}"') for name in names)
        values = ", ".join(f"NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, {path})), '')" for path in paths)
        return f"CASE WHEN JSON_VALID(tag_text) THEN COALESCE({values}) END" if names else "NULL"

    rows = engine.rows(f"SELECT DISTINCT {first(keys)}, {first(others)} FROM ({texts}) AS texts")
    pairs = {(plain_value(str(key or "")), plain_value(str(other))) for key, other in rows if other}
    beside = [key == other for key, other in pairs if key]
    people = ["@" in other for other in {other for _, other in pairs}]
    return 2 * sum(people) <= len(people) and 2 * sum(beside) >= len(beside)


def plain_value(value: str) -> str:
    """A value without what spellings differ in: case, and dashes, underscores or blanks between letters.

    Of values with a digit dashes count: team-1-2 is not team-12.
    """
    dashed = value.lower().replace("_", "-").replace(" ", "-").replace("--", "-").replace("--", "-")
    if any(digit in dashed for digit in "0123456789"):
        return dashed
    return dashed.replace("-", "") or value


def dearest_spellings(costs: Mapping[str, float]) -> dict[str, str]:
    """Each spelling, and the one that costs most of those that are the same value.

    Args:
        costs: cost by value as it is written.
    """
    names: dict[str, str] = {}
    for value in sorted(costs, key=lambda one: (-costs[one], one)):
        names.setdefault(plain_value(value), value)
    return {value: names[plain_value(value)] for value in costs}


def known_spelling(asked: str, known: Iterable[str]) -> str:
    """The value as it is known: itself where it is, else the only one that differs in spelling, else as asked."""
    values = list(known)
    if asked in values:
        return asked
    alike = [one for one in values if plain_value(one) == plain_value(asked)]
    return alike[0] if len(alike) == 1 else asked
