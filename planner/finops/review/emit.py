"""The KPIs' SQL for the user's own engine."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from planner.errors import InputError
from planner.finops.engine.dialects import emit_sql
from planner.finops.kpis import load_kpis
from planner.finops.review.inputs import EXPIRY_DAYS, MAX_TAGS, month_end, year_before
from planner.finops.use_cases.library import tag_path


def emit_kpis(
    dialect: str, month: date | None, compare: date | None, tags: tuple[str, ...], run_tag: str
) -> str:
    """All KPIs as one script over a view `focus`, with the month's values put in.

    Args:
        dialect: name of the SQL dialect.
        month: first day of the month.
        compare: first day of the month it is compared with; default: the one before.
        tags: mandatory tag keys.
        run_tag: tag key that names a run.

    Raises:
        InputError: no month, or no or too many tags.
    """
    if month is None:
        raise InputError("--emit-sql: name the month with --month 2026-10; no bill is read to find it")
    if not 1 <= len(tags) <= MAX_TAGS:
        raise InputError(f"--tags: name one to {MAX_TAGS} tags")
    before = compare or (month - timedelta(days=1)).replace(day=1)
    end = month_end(month)
    keys = [*tags, *([tags[0]] * MAX_TAGS)][:MAX_TAGS]
    values: dict[str, Any] = {
        "first": year_before(month), "start": month, "end": end,
        "before_start": before, "before_end": month_end(before),
        "horizon": end + timedelta(days=EXPIRY_DAYS), "run_tag": tag_path(run_tag), "like_tag": f'%"{run_tag}"%',
        "tags_apart": "no",
        # the cause of one anomaly: change the day and the service
        "day": end - timedelta(days=1), "day_end": end, "window_start": end - timedelta(days=29),
        "provider": "PROVIDER", "service": "SERVICE", "scope": "sku", "thing": "SKU",
        **{f"tag_{i}": tag_path(key) for i, key in enumerate(keys, 1)},
    }  # fmt: skip
    parts = [f"-- KPIs of {month:%Y-%m} against {before:%Y-%m} for {dialect}, over the view focus\n"]
    for kpi in load_kpis():
        sql = emit_sql(kpi.sql, dialect, {name: values[name] for name in kpi.parameters})
        parts.append(f"\n-- {kpi.name}: {kpi.title}. {kpi.meaning}\n-- unit: {kpi.unit}\n{sql.strip()};\n")
    return "".join(parts)
