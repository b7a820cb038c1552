"""docs/finops/kpis.md, made of the headers of the SQL files and of `worked_out.csv`."""

from __future__ import annotations

import re

from planner.finops.kpis.registry import gate_of, load_kpis, worked_out

_INTRO = """# KPIs of the monthly review

```bash
planner review --focus bills/ --month 2026-10               # the review that shows them
planner review --emit-sql bigquery --month 2026-10          # their queries, for your own engine
```

Each KPI is one SELECT in DuckDB's dialect over the view `focus`, without anything that other engines lack. Its file,
`planner/finops/kpis/queries/NAME.sql`, lists the columns that it reads. Sums are money in the billing currency, accrual
(EffectiveCost), by the month of the charge period, without Tax, unless a KPI says otherwise.

Parameters are `:start`, `:end` (the month), `:before_start`, `:before_end` (the month it is compared with), `:horizon`
(90 days on), `:tag_1` .. `:tag_6`, `:run_tag` (JSON paths of tag keys), `:like_tag` (rows that have the run tag) and
`:tags_apart` (`yes` where spellings of a tag's value stay apart).

*Needs* is the first FOCUS version with the columns; `made_of` in a file is the dataset, or the condition on charges,
without which there are no rows. *Checks* flag or withhold a KPI that fails them:
`planner/finops/data/quality_checks.csv` has their thresholds and reasons, `figures.csv` the KPI of each figure. This
page is made by `python -m planner.finops.kpis.document`.
"""


def kpi_page() -> str:
    """The page's text."""
    parts = [_INTRO, "\n## Queries of the bill\n"]
    for kpi in load_kpis():
        lines = (
            f"\n### {kpi.title} (`{kpi.name}`)\n", kpi.meaning, "", *_unit(kpi.unit), f"- Formula: {kpi.formula}",
            f"- Source: {kpi.source}", _needs(f"FOCUS {kpi.since}", kpi.gate),
        )  # fmt: skip
        parts.append("\n".join(lines) + "\n")
    parts.append("\n## Derived from them\n")
    for row in worked_out().values():
        lines_of_row = (
            f"\n### {row['title']} (`{row['name']}`)\n", f"{row['meaning']}.", "", *_unit(row["unit"]),
            f"- Formula: {row['formula']}", f"- Source: {row['source']}", f"- Code: `{row['module']}`",
            _needs(row["needs"], gate_of(row["name"])),
        )  # fmt: skip
        parts.append("\n".join(lines_of_row) + "\n")
    parts.append(f"\n## The utilisation file\n\n{_utilisation()}")
    return "".join(parts)


def _unit(unit: str) -> list[str]:
    of_its_own = re.sub(r"(; (costs?|the sums) (is|are) )?money( in the billing currency)?$", "", unit)
    return [f"- Unit: {of_its_own}"] if of_its_own else []


def _needs(what: str, gate: tuple[str, ...]) -> str:
    return f"- Needs: {what}" + (f"; checks: {', '.join(gate)}" if gate else "")


def _utilisation() -> str:
    from planner.finops import utilisation

    return (utilisation.__doc__ or "").strip() + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(kpi_page())
