"""What an engine must do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pandas as pd

Parameter = str | int | float | bool | date | tuple[str, ...] | None
"""A tuple stands for one text that a bill spells in several ways: JSON paths, of which the first with a value that is
not blank counts, or patterns of LIKE, any of which may match. After IN it stands for its texts."""


class Engine(Protocol):
    """Runs queries written in DuckDB's dialect over the view `focus`.

    `:name` in a query is a parameter, put in as a literal: in the syntax tree by sqlglot, or for DuckDB in place of the
    token, never inside of a text, a name or a comment (`literals`).
    """

    name: str
    dialect: str

    def query(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
        """Run one query.

        Args:
            sql: one SELECT in DuckDB's dialect, without syntax that sqlglot cannot carry over.
            parameters: values of `:name`.

        Raises:
            planner.errors.InputError: a parameter is missing or unknown to the query.
        """
        ...

    def keep(self, name: str, sql: str, parameters: Mapping[str, Parameter] | None = None) -> None:
        """Make the rows of a query a table of this engine's later queries, until it is closed.

        An engine without the right to write asks the query again with each of them.

        Args:
            name: of the table; an earlier one of that name is replaced.
            sql: as of `query`.
            parameters: as of `query`.
        """
        ...

    def close(self) -> None:
        """Give back connections, temporary files and memory."""
        ...
