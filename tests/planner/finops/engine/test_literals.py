"""Parameters put into a query without reading its syntax: the query is the one that sqlglot writes."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from planner.errors import InputError
from planner.finops.engine import dialects, literals
from planner.finops.engine.base import Parameter
from planner.finops.engine.literals import duckdb_text
from tests.planner.finops.engine.golden import NAMES, ROOM, parameters_of

EVERYWHERE = """-- a question: :not_this
WITH x AS (
  SELECT ':a' AS text, ":b" AS quoted, a::INT AS number, 'it''s :c' AS own, 2-:number AS rest, :value AS value
  FROM focus WHERE day >= :day AND Tags LIKE :pattern -- :d
  AND COALESCE(provider, '') NOT IN (:many)
)
SELECT NULLIF(TRIM(JSON_EXTRACT_STRING(Tags, :path)), '') AS team, * FROM x WHERE service IN ('A', :value)"""
VALUES: dict[str, Parameter] = {
    "number": 1,
    "value": "x",
    "day": date(2026, 10, 1),
    "pattern": "%a%",
    "many": ("A", "B"),
    "path": '$."a"',
}
# what ends a text, a name or a comment, or begins another
odd_texts = st.text(st.sampled_from("'\"-/*:;$\\\n\t a1é,()"), max_size=12)
plain_values = st.one_of(
    odd_texts,
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.dates(),
    st.datetimes(),
)


def is_taken(sql: str, values: dict[str, Parameter], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether parameters are put in without sqlglot."""
    with monkeypatch.context() as patch:
        patch.setattr(dialects, "bound_text", lambda *args, **given: "")
        return duckdb_text(sql, values) != ""


def meaning(text: str) -> str:
    """A query as sqlglot writes it, numbers by value, without comments and parentheses around negative ones."""
    tree: Any = parse_one(text, read="duckdb")
    for number in tree.find_all(exp.Literal):
        if not number.is_string:
            number.set("this", repr(float(number.this)))
    for node in list(tree.find_all(exp.Paren)):
        if isinstance(node.this, exp.Neg):
            node.replace(node.this)
    return str(tree.sql("duckdb", comments=False))


@pytest.mark.parametrize("name", NAMES)
def test_no_query_of_the_review_is_read_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = (ROOM / name).read_text(encoding="utf-8")
    assert is_taken(sql, parameters_of(sql), monkeypatch)


@pytest.mark.parametrize("name", ["kpis/queries/run_cost.sql", "kpis/queries/allocation.sql"])
@pytest.mark.parametrize("tags", ['$."a\'b"', ('$."team"', '$."Team"')])
def test_a_query_of_the_review_means_the_same(name: str, tags: Parameter) -> None:
    sql = (ROOM / name).read_text(encoding="utf-8")
    values = parameters_of(sql)
    values |= {name: tags for name in values if name in {"tag_1", "tag_2", "run_tag"}}
    assert meaning(duckdb_text(sql, values)) == meaning(dialects.bound_text(sql, values))


@example(-1, "'; DROP TABLE focus; --", ("", "\\"), ("a' OR '", "b"))
@given(
    number=st.integers(-9, 9),
    value=plain_values,
    paths=st.lists(odd_texts, min_size=1, max_size=3).map(tuple),
    many=st.lists(odd_texts, min_size=1, max_size=3).map(tuple),
)
def test_any_value_means_the_same_wherever_it_stands(
    number: int, value: Parameter, paths: tuple[str, ...], many: tuple[str, ...]
) -> None:
    path = tuple(f'$."{text}"' for text in paths)
    values = VALUES | {"number": number, "value": value, "pattern": many, "many": many, "path": path}
    assert meaning(duckdb_text(EVERYWHERE, values)) == meaning(dialects.bound_text(EVERYWHERE, values))


@given(plain_values)
def test_any_value_comes_back(value: Parameter) -> None:
    found = duckdb.execute(duckdb_text("SELECT :v AS v -- :w", {"v": value})).fetchall()
    assert found == [(value,)]


def test_names_are_those_outside_of_texts_and_comments() -> None:
    assert literals.parameter_names(EVERYWHERE) == ("day", "many", "number", "path", "pattern", "value")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT E'a\\':v' AS a, :v AS v",
        "SELECT $$:a$$ AS a, :v AS v",
        "SELECT 1 /* :a */ AS a, :v AS v",
        "SELECT ':v AS v",
        "FROM focus SELECT :v AS v",
        "SELECT STRPOS(Tags, :v) AS v FROM focus",
        "SELECT e:v",  # E'...' by DuckDB's rules
        "SELECT {'key':v} AS v",
        "SELECT Tags[1:v] AS v FROM focus",
        "SELECT :v'a'",
    ],
)
def test_what_it_does_not_know_is_left_to_sqlglot(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, Parameter] = {"v": ("a", "b") if "STRPOS" in sql else 1}
    assert not is_taken(sql, values, monkeypatch)


@pytest.mark.parametrize(
    "pattern",
    [
        "'a' || x LIKE :p AS v",
        "x::VARCHAR LIKE :p AS v",
        "NOT x LIKE :p AND TRUE AS v",
        "(x LIKE :p) AS v",
        "x NOT LIKE :p AS v",
        "x = 'b' AND x LIKE :p -- another\n OR x = 'd' AS v",
    ],
)
def test_a_pattern_of_several_texts_is_compared_with_all_that_stands_before_it(pattern: str) -> None:
    sql, values = f"SELECT {pattern} FROM (VALUES ('b'), ('ab')) AS t (x)", {"p": ("ab", "aab")}
    found, same = (
        duckdb.execute(write(sql, values)).fetchall() for write in (duckdb_text, dialects.bound_text)
    )
    assert found == same


@pytest.mark.parametrize("after", ["|| '%'", "ESCAPE '!'"])
def test_a_pattern_that_goes_on_is_left_to_sqlglot(after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = f"SELECT 1 AS v FROM focus WHERE x LIKE :p {after}"
    assert not is_taken(sql, {"p": ("a", "b")}, monkeypatch)


def test_a_comment_ends_with_its_line_however_that_ends() -> None:
    assert duckdb.execute(duckdb_text("SELECT 1 AS a -- :no\r, :v AS v", {"v": 2})).fetchall() == [(1, 2)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), datetime(2026, 10, 1, 12)])
def test_numbers_that_are_none_are_left_to_sqlglot(value: Parameter, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_taken("SELECT :v AS v", {"v": value}, monkeypatch) is isinstance(value, datetime)


@pytest.mark.parametrize(
    ("sql", "values", "text"),
    [
        ("SELECT :a AS a", {}, "needs a value for :a"),
        ("SELECT 1 AS a", {"b": 1}, "has no parameter :b; it has no parameters"),
        ("SELECT x, COUNT(*) FROM focus GROUP\nBY  all", {}, "GROUP BY ALL"),
        ("SELECT x FROM focus qualify ROW_NUMBER() OVER (ORDER BY x) = 1", {}, "QUALIFY"),
        ("WITH x AS (SELECT 1) DELETE FROM focus", {}, "one SELECT is needed"),
        ("SELECT 1 AS a; SELECT 2 AS b", {}, "one SELECT is needed"),
        ("SELECT STRPOS(Tags, :a) AS a FROM focus", {"a": ("b", "c")}, "neither a JSON path nor a pattern"),
    ],
)
def test_refused_queries(sql: str, values: dict[str, Parameter], text: str) -> None:
    with pytest.raises(InputError, match=text):
        duckdb_text(sql, values)


def test_a_query_in_another_is_not_cut_off_by_a_comment() -> None:
    text = duckdb_text("SELECT :v AS v -- the value", {"v": 7})
    assert duckdb.execute(f"SELECT * FROM ({text}) AS x").fetchall() == [(7,)]
