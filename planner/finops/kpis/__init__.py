"""KPIs of a monthly review: one SQL file each, in DuckDB's dialect without anything that other engines lack."""

from planner.finops.kpis.registry import Kpi, load_kpi, load_kpis, made_of, query_kpi

__all__ = ["Kpi", "load_kpi", "load_kpis", "made_of", "query_kpi"]
