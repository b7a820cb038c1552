"""The KPIs' SQL for the user's own engine."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from planner.errors import InputError
from planner.finops.engine.dialects import emit_sql
from planner.finops.kpis import load_kpis
from planner.finops.read.tag_keys import RUN_TAGS, TagKeys
from planner.finops.review.inputs import EXPIRY_DAYS, MAX_TAGS, month_end, year_before
from planner.finops.use_cases.library import like_tags, tag_paths

_OF_A_BILL = (" (as the bill spells them)", " (as given; with --focus BILL as the bill spells them)")


def emit_kpis(
    dialect: str,
    month: date | None,
    compare: date | None,
    tags: tuple[str, ...],
    run_tag: str | None,
    keys: TagKeys | None = None,
    *,
    exact_tags: bool = False,
) -> str:
    """All KPIs as one script over a view `focus`, with the month's values put in.

    Args:
        dialect: name of the SQL dialect.
        month: first day of the month.
        compare: first day of the month it is compared with; default: the one before.
        tags: mandatory tag keys.
        run_tag: tag key that names a run.
        keys: those of a bill: its spellings of the tags' keys count; None: keys are as given.
        exact_tags: as of a review.

    Raises:
        InputError: no month, or no or too many tags.
    """
    if month is None:
        raise InputError("--emit-sql: name the month with --month 2026-10")
    if not 1 <= len(tags) <= MAX_TAGS:
        raise InputError(f"--tags: name one to {MAX_TAGS} tags")
    before = compare or (month - timedelta(days=1)).replace(day=1)
    end = month_end(month)
    known = keys or TagKeys(None)
    runs = known.run_key(run_tag) if keys or run_tag else RUN_TAGS[-1]
    tags = tuple(dict.fromkeys(map(known.spelled, tags)))
    merged = {} if exact_tags else known.merged((*tags, runs))
    spelled = {key: merged.get(key, (key,)) for key in (*tags, runs)}
    asked = [*tags, *([tags[0]] * MAX_TAGS)][:MAX_TAGS]
    values: dict[str, Any] = {
        "first": year_before(month), "start": month, "end": end,
        "before_start": before, "before_end": month_end(before),
        "horizon": end + timedelta(days=EXPIRY_DAYS), "run_tag": tag_paths(spelled[runs]),
        "like_tag": like_tags(spelled[runs]), "tags_apart": "yes" if exact_tags else "no",
        # the cause of one anomaly: change the day and the service
        "day": end - timedelta(days=1), "day_end": end, "window_start": end - timedelta(days=29),
        "provider": "PROVIDER", "service": "SERVICE", "scope": "sku", "thing": "SKU",
        **{f"tag_{i}": tag_paths(spelled[key]) for i, key in enumerate(asked, 1)},
    }  # fmt: skip
    named = ", ".join(key for own in spelled.values() for key in own)
    parts = [
        f"-- KPIs of {month:%Y-%m} against {before:%Y-%m} for {dialect}, over the view focus\n"
        f"-- keys of tags: {_in_one_line(named)}{_OF_A_BILL[keys is None]}\n"
    ]
    for kpi in load_kpis():
        sql = emit_sql(kpi.sql, dialect, {name: values[name] for name in kpi.parameters})
        parts.append(f"\n-- {kpi.name}: {kpi.title}. {kpi.meaning}\n-- unit: {kpi.unit}\n{sql.strip()};\n")
    return "".join(parts)


def _in_one_line(words: str) -> str:
    """Words of a bill within a comment, which a line end would leave."""
    return "".join(one if one.isprintable() else " " for one in words)
