"""docs/finops/kpis.md, made of the headers of the SQL files and of `worked_out.csv`."""

from __future__ import annotations

from planner.finops.kpis.registry import gate_of, load_kpis, worked_out

_INTRO = """# KPIs of the monthly review

This page is made from the headers of `planner/finops/kpis/queries/*.sql` (`python -m planner.finops.kpis.document`); a
test keeps it equal. Each query is one SELECT in DuckDB's dialect over the view `focus`, without anything that other
engines lack; `planner review --emit-sql bigquery --month 2026-10` prints them for your own engine.

Sums are accrual (EffectiveCost), by the month of the charge period, without Tax unless a KPI says otherwise. The
parameters are `:start`, `:end` (the month), `:before_start`, `:before_end` (the month it is compared with), `:horizon`
(90 days on), `:tag_1` .. `:tag_6`, `:run_tag` (JSON paths of tag keys), `:like_tag` (rows that have the run tag)
and `:tags_apart` (`yes` where spellings of a tag's value stay apart).

A KPI with *made of* has no rows where no charge meets that condition, or that dataset is not there; a small bill is not
asked for it then.

A KPI is flagged or withheld where the checks named under *gate* fail; `planner/finops/data/quality_checks.csv` has
their thresholds and reasons, `figures.csv` the KPI of each figure and the inputs that the figure does not use.
"""


def kpi_page() -> str:
    """The page's text."""
    parts = [_INTRO, "\n## Asked of the bill\n"]
    for kpi in load_kpis():
        lines = (
            f"\n### {kpi.title} (`{kpi.name}`)\n", kpi.meaning, "", f"- unit: {kpi.unit}", f"- formula: {kpi.formula}",
            f"- source: {kpi.source}", f"- columns: {', '.join(kpi.columns)}",
            f"- gate: {', '.join(kpi.gate) or 'none'}; since FOCUS {kpi.since}",
            *([f"- made of: `{kpi.made_of}`"] if kpi.made_of else []),
        )  # fmt: skip
        parts.append("\n".join(lines) + "\n")
    parts.append("\n## Worked out from them\n")
    for row in worked_out().values():
        lines_of_row = (
            f"\n### {row['title']} (`{row['name']}`)\n", f"{row['meaning']}.", "", f"- unit: {row['unit']}",
            f"- formula: {row['formula']}", f"- source: {row['source']}", f"- needs: {row['needs']}",
            f"- gate: {', '.join(gate_of(row['name'])) or 'none'}", f"- code: `{row['module']}`",
        )  # fmt: skip
        parts.append("\n".join(lines_of_row) + "\n")
    parts.append(f"\n## The utilisation file\n\n{_utilisation()}")
    return "".join(parts)


def _utilisation() -> str:
    from planner.finops import utilisation

    return (utilisation.__doc__ or "").strip() + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(kpi_page())
