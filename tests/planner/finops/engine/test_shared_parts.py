"""Parts of a query that many places read, taken out for Spark: asked in two steps it answers as in one."""

from __future__ import annotations

import duckdb
import pytest

from planner.finops.engine.dialects import bind
from planner.finops.engine.spark import shared_parts
from tests.planner.finops.engine.golden import NAMES, QUERIES, parameters_of

NUMBERS = "WITH numbers AS (SELECT UNNEST([1, 2, 3]) AS n), twice AS"
READERS = "SELECT a.n FROM twice AS a JOIN twice ON twice.n = 2 * a.n WHERE a.n IN (SELECT n FROM twice)"
PARTS = {
    "a part of a part": "SELECT n FROM numbers UNION ALL SELECT 2 * n FROM numbers",
    "with a part of its own": "WITH more AS (SELECT 2 * n AS n FROM numbers) SELECT n FROM more UNION ALL SELECT 2",
    "of a shared part": "SELECT a.n FROM numbers AS a, numbers AS b, numbers WHERE b.n = a.n",
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_the_answer_is_the_same_in_two_steps(part: str) -> None:
    sql = f"{NUMBERS} ({part}) {READERS}"
    with duckdb.connect() as connection:
        expected = sorted(connection.sql(sql).fetchall())
        tree, taken = bind(sql, {}), []
        for name, query in shared_parts(tree):
            connection.sql(f"CREATE TABLE {name} AS {query.sql('duckdb')}")
            taken.append(name)
        assert "x_shared_twice" in taken
        assert sorted(connection.sql(tree.sql("duckdb")).fetchall()) == expected != []


@pytest.mark.parametrize(
    "readers",
    [
        "SELECT a.n FROM twice AS a JOIN twice AS b ON b.n = a.n + 1",
        "SELECT n FROM (WITH twice AS (SELECT 5 AS n) SELECT a.n FROM twice, twice AS a) JOIN twice USING (n)",
    ],
    ids=["two readers", "two parts of a name"],
)
def test_what_few_places_read_stays(readers: str) -> None:
    tree = bind(f"{NUMBERS} (SELECT 2 AS n) {readers}", {})
    before = tree.sql("duckdb")
    assert list(shared_parts(tree)) == []
    assert tree.sql("duckdb") == before


def test_queries_of_the_review_have_such_parts() -> None:
    sql = QUERIES[NAMES.index("kpis/queries/allocation.sql")].read_text(encoding="utf-8")
    assert [name for name, _ in shared_parts(bind(sql, parameters_of(sql)))] == ["x_shared_parsed"]


def test_a_query_that_was_taken_apart_is_whole_when_it_is_asked_again() -> None:
    sql = QUERIES[NAMES.index("kpis/queries/allocation.sql")].read_text(encoding="utf-8")
    parameters = parameters_of(sql)
    before = bind(sql, parameters).sql("duckdb")
    assert list(shared_parts(bind(sql, parameters)))
    assert bind(sql, parameters).sql("duckdb") == before
