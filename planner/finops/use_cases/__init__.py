"""The official FOCUS use cases: questions that every bill in FOCUS shape should answer, one SQL file each.

`catalogue.csv` says which question each version of the specification asks under which name; several names may lead
to one query, because the view `focus` has the columns of all versions.
"""

from __future__ import annotations

from planner.finops.use_cases.library import UseCase, answer_use_case, load_use_cases, query_sql

__all__ = ["UseCase", "answer_use_case", "load_use_cases", "query_sql"]
