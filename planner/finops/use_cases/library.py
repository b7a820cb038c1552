"""Find and run the official use cases."""

from __future__ import annotations

import csv
from datetime import date
from importlib.resources import files
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from planner.finops.engine.base import Engine, Parameter

_HERE = "planner.finops.use_cases"
_LONGEST = 200  # characters of a name: a longer one is no file's


@record(frozen=True)
class UseCase:
    """One question of one version of the specification.

    Attributes:
        focus_version: `1.0` .. `1.4`.
        slug: its name in the official library.
        title: the question.
        query: name of the SQL file that answers it.
        source: page of the official library.
    """

    focus_version: str
    slug: str
    title: str
    query: str
    source: str


def load_use_cases(focus_version: str | None = None) -> tuple[UseCase, ...]:
    """The catalogue, in its order.

    Args:
        focus_version: only the questions of this version.

    Raises:
        InputError: no such version.
    """
    text = files(_HERE).joinpath("catalogue.csv").read_text(encoding="utf-8")
    cases = tuple(
        UseCase(row["focus_version"], row["slug"], row["title"], row["query"], row["source"])
        for row in csv.DictReader(text.splitlines())
    )
    if focus_version is None:
        return cases
    use_cases = tuple(case for case in cases if case.focus_version == focus_version)
    if not use_cases:
        versions = ", ".join(sorted({case.focus_version for case in cases}))
        raise InputError(f"no use cases of FOCUS {focus_version!r}; there are those of {versions}")
    return use_cases


def query_sql(name: str) -> str:
    """The SQL of a query, in DuckDB's dialect.

    Args:
        name: a use case's slug, or the name of a query.

    Raises:
        InputError: there is none of that name.
    """
    known = {case.slug: case.query for case in load_use_cases()}
    file = files(_HERE).joinpath("queries", f"{known.get(name, name)}.sql")
    if len(name) > _LONGEST or not name.replace("-", "_").isidentifier() or not file.is_file():
        from planner.inputs.faults import near

        guess = near(name, sorted({*known, *known.values()}))
        hint = f"; did you mean {guess}?" if guess else ""
        raise InputError(f"no use case {name!r}{hint}")
    return file.read_text(encoding="utf-8")


def answer_use_case(
    engine: Engine, name: str, *, start: date, end: date, tag: str | tuple[str, ...] = "application"
) -> pd.DataFrame:
    """Answer one question on the bill that `engine` has as `focus`.

    Args:
        engine: where the bill is.
        name: a use case's slug, or the name of a query.
        start: first charge (or billing) period looked at.
        end: the first one after those looked at.
        tag: key of the tag that names an application, for the questions that ask for one; of several spellings the
            first with a value counts.

    Raises:
        InputError: no such use case.
    """
    sql = query_sql(name)
    given: dict[str, Parameter] = {
        "start": start,
        "end": end,
        "tag": tag_paths((tag,) if isinstance(tag, str) else tag),
    }
    return engine.query(sql, {key: value for key, value in given.items() if f":{key}" in sql})


def tag_paths(spellings: Sequence[str]) -> Parameter:
    """JSON paths of a tag that a bill spells in one or in several ways, as a parameter of a query.

    Raises:
        InputError: as of `tag_path`.
    """
    paths = tuple(map(tag_path, spellings))
    return paths if len(paths) > 1 else paths[0]


def like_tags(spellings: Sequence[str]) -> Parameter:
    """Patterns of LIKE for texts that may have a tag, spelled in one or in several ways, as a parameter of a query."""
    patterns = tuple(f'%"{key}"%' for key in spellings)
    return patterns if len(patterns) > 1 else patterns[0]


def tag_path(key: str) -> str:
    """JSON path of a tag, whatever its key is made of.

    Raises:
        InputError: the key holds a double quote, which no JSON path can carry on every engine.
    """
    if '"' in key or not key:
        raise InputError(f"tag {key!r}: an empty key, or one with a double quote, cannot be looked up")
    return f'$."{key}"'
