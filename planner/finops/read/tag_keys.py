"""Tag keys as a bill spells them: `team` asked for, `Team` in the bill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.finops.engine.duckdb import DuckDbEngine
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

_TEXTS = 20_000  # different tag texts looked at
_SHOWN = 8
PLAN_TAG = "planner_run_id"  # planner.export.names.RUN_TAG, of which the reader of bills knows nothing


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

    def run_key(self, asked: str) -> str:
        """The key that names runs: the one asked for, or, where no charge carries it, that of exported plans."""
        spelled = self.spelled(asked)
        ours = self.spelled(PLAN_TAG)
        return ours if self.present and spelled not in self.present and ours in self.present else spelled

    def remark(self, keys: Sequence[str]) -> str:
        """What to say of mandatory keys that no charge carries, and of keys that are spelled in several ways."""
        if self.present is None:
            return ""
        out = []
        if lacking := [key for key in keys if key not in self.present]:
            shown = ", ".join(self.present[:_SHOWN]) + (", ..." if len(self.present) > _SHOWN else "")
            out.append(
                f"No charge carries the tag {' or '.join(lacking)}; the keys present are {shown or 'none'}."
            )
        for key in keys:
            others = [one for one in self.present if one != key and one.casefold() == key.casefold()]
            if key in self.present and others:
                out.append(
                    f"The tag {key} is also spelled {', '.join(others)}; those charges are not counted with it."
                )
        return " ".join(out)


def tag_keys(bill: Bill) -> TagKeys:
    """List the keys of a sample of the bill's tags."""
    if not isinstance(bill.engine, DuckDbEngine):
        return TagKeys(None)
    frame = bill.engine.query(
        "SELECT tag_key, COUNT(*) AS n FROM (SELECT UNNEST(JSON_KEYS(tag_text)) AS tag_key FROM ("
        f"SELECT DISTINCT Tags AS tag_text FROM focus WHERE Tags LIKE '{{%' LIMIT {_TEXTS}"
        ") AS texts WHERE JSON_VALID(tag_text)) AS keys GROUP BY tag_key ORDER BY n DESC, tag_key"
    )
    return TagKeys(tuple(str(key) for key in frame["tag_key"]))
