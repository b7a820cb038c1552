"""Tags as a bill spells them: the key `team` asked for, `Team` in the bill; values that differ in spelling only.

`ML-Platform`, `ml_platform` and `ml platform` are one value. The rule is that of the KPI `allocation`, which applies it
inside the engine; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.read.columns import COST
from planner.finops.read.select import text
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

_TEXTS = 20_000  # different tag texts looked at; of a bill of several files some of each, as each spells for itself
_MOST_FILES = 50
_SHOWN = 8
RUN_TAGS = ("planner_run_id", "run_id")
"""Keys that name runs, the first that a bill has counts: that of exported plans (`planner.export.names.RUN_TAG`, which
the reader of bills does not import), then the usual one."""


@record(frozen=True)
class TagKeys:
    """Keys of a bill's tags.

    Attributes:
        present: those of a sample of the charges, the most frequent first; None where the engine cannot list them.
    """

    present: tuple[str, ...] | None

    def spelled(self, asked: str) -> str:
        """The key as the bill spells it: itself where it is there, else the most frequent that differs in case only."""
        keys = self.present or ()
        if asked in keys:
            return asked
        return next((key for key in keys if key.casefold() == asked.casefold()), asked)

    def spellings(self, key: str) -> tuple[str, ...]:
        """The key and, the most frequent first, those that differ in case only: all of them are one tag."""
        return (key, *(one for one in self.present or () if one != key and one.casefold() == key.casefold()))

    def merged(self, asked: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The spellings that count of each key that the bill spells in several ways.

        Where several spellings are asked for, each is itself alone.
        """
        found = {key: self.spellings(key) for key in asked}
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

    def remark(self, keys: Sequence[str], merged: Mapping[str, Sequence[str]]) -> str:
        """What to say of mandatory keys that no charge carries, and of keys that are spelled in several ways.

        Args:
            keys: mandatory ones, as the bill spells them.
            merged: of `merged`, what counts as one; other spellings do not.
        """
        if self.present is None:
            return ""
        out = []
        if lacking := [key for key in keys if key not in self.present]:
            shown = ", ".join(self.present[:_SHOWN]) + (", ..." if len(self.present) > _SHOWN else "")
            out.append(
                f"No charge carries the tag {' or '.join(lacking)}; the keys present are {shown or 'none'}."
            )
        out += [spelling_remark(self.spellings(key), merged.get(key, ())) for key in keys]
        return " ".join(filter(None, out))


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


def tag_keys(bill: Bill) -> TagKeys:
    """List the keys of a sample of the bill's tags."""
    if not isinstance(bill.engine, DuckDbEngine):
        return TagKeys(None)
    frame = bill.engine.query(
        "SELECT tag_key, COUNT(*) AS n FROM (SELECT UNNEST(JSON_KEYS(tag_text)) AS tag_key FROM ("
        f"{_texts_sql(bill)}) AS texts WHERE JSON_VALID(tag_text)) AS keys GROUP BY tag_key ORDER BY n DESC, tag_key"
    )
    return TagKeys(tuple(str(key) for key in frame["tag_key"]))


def _texts_sql(bill: Bill) -> str:
    """Different texts of tags: the first that the bill has would all be of its first file."""
    files = [one for one in bill.sources if one.dataset == COST]
    largest = sorted(files, key=lambda one: -one.rows)[:_MOST_FILES]
    sql = "SELECT DISTINCT Tags AS tag_text FROM focus WHERE Tags LIKE '{%'"
    if len(files) < 2 or sum(one.rows for one in files) <= _TEXTS:
        return f"{sql} LIMIT {_TEXTS}"
    parts = [sql, *(f"{sql} AND x_source = {text(one.path)}" for one in largest)]
    each = f"LIMIT {_TEXTS // len(parts)}"
    return " UNION ".join(f"(SELECT tag_text FROM ({part} {each}) AS texts)" for part in parts)


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
