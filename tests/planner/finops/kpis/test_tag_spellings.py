"""Values of a tag that differ in spelling only are one owner, named with how they were written."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pytest
from sqlglot import exp, parse_one

from planner.errors import InputError
from planner.finops.cube import build_cube, open_cube
from planner.finops.engine.dialects import DIALECTS, bind, emit_sql
from planner.finops.forecast.bill import daily_of_bill
from planner.finops.forecast.source import read_costs
from planner.finops.kpis import query_kpi
from planner.finops.read import open_bill
from planner.finops.read.tag_keys import tag_keys
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Review
from planner.finops.showback.statement import rules_by_tag, team_statement
from planner.finops.use_cases.library import tag_paths
from planner.finops.use_cases.report import report_use_case
from tests.planner.finops.small_bill import charge, each_day, rows_of, section, sections_only, write_bill

SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)
SPELLINGS = {"ML-Platform": 50, "ml_platform": 30, "ML Platform": 15, "mlplatform": 4, "MLPLATFORM": 1}


def bill(path: Path, costs: dict[str, float]) -> Path:
    rows = [
        charge(date(2026, 10, day + 1), cost, Tags=f'{{"team":"{team}","env":"prod"}}')
        for day, (team, cost) in enumerate(costs.items())
    ]
    rows += each_day(SEPTEMBER, SEPTEMBER, 20, Tags='{"team":"mL--platform","env":"Prod"}')
    return write_bill(path / "bill.csv", rows)


def review(path: Path, **options: bool) -> Review:
    with sections_only("allocation"), open_bill([path]) as opened:
        return review_bill(opened, month=OCTOBER, forecast=False, exact_tags=options.get("exact", False))


def owners(made: Review) -> dict[str, float]:
    return {row["owner"]: row["cost"] for row in rows_of(made, "allocation", "allocation")}


def test_spellings_are_one_owner_under_the_dearest(tmp_path: Path) -> None:
    made = review(bill(tmp_path, SPELLINGS | {"search": 7}))
    assert owners(made) == {"ML-Platform": pytest.approx(100), "search": pytest.approx(7)}
    said = section(made, "allocation").sentences[0]
    named = "ML-Platform is also spelled ML Platform, MLPLATFORM, mL--platform, ml_platform, mlplatform"
    assert named in said and "--exact-tags keeps them apart" in said
    assert "prod is also spelled Prod" in said


def test_exact_tags_keep_them_apart(tmp_path: Path) -> None:
    made = review(bill(tmp_path, SPELLINGS), exact=True)
    found = owners(made)
    assert {name: found[name] for name in SPELLINGS} == pytest.approx(SPELLINGS)
    assert "spelled" not in section(made, "allocation").sentences[0]


@pytest.mark.parametrize(
    ("values", "count"),
    [
        (("team-1-2", "team-12"), 2),
        (("Team 1-2", "team_1_2"), 1),
        (("-", "_"), 2),
        (("ÄRZTE", "ärzte"), 1),
        (("a.b", "ab"), 2),
    ],
)
def test_what_is_one_value(values: tuple[str, ...], count: int, tmp_path: Path) -> None:
    made = review(bill(tmp_path, dict.fromkeys(values, 10.0)))
    assert len([name for name, cost in owners(made).items() if cost]) == count


def test_the_sums_are_those_of_the_bill_whatever_the_spelling(tmp_path: Path) -> None:
    path = bill(tmp_path, SPELLINGS | {"search": 7, "Search": 9, "": 3})
    merged, apart = review(path), review(path, exact=True)
    assert sum(owners(merged).values()) == pytest.approx(sum(owners(apart).values())) == pytest.approx(119)


def mixed(path: Path) -> Path:
    """Teams ml (60 and 5) and search (30), by keys spelled team and Team; a charge with both is of its `team`."""
    of = {'{"team":"ml","env":"prod"}': 60, '{"Team":"search","env":"prod"}': 30, '{"env":"prod"}': 2,
          '{"team":" ","TEAM":"ml","ENV":"prod"}': 5, '{"Team":"other","team":"ml","env":"prod"}': 3}  # fmt: skip
    of_month = {"BillingPeriodStart": "2026-10-01T00:00:00Z"}
    rows = [
        charge(date(2026, 10, day + 1), cost, Tags=tags, **of_month)
        for day, (tags, cost) in enumerate(of.items())
    ]
    last = charge(date(2026, 10, 9), 4, Tags='{"team":"ml","env":"x"}', **of_month)
    return write_bill(path / "mixed.csv", [*rows, last])


def test_keys_that_a_bill_mixes_count_as_one(tmp_path: Path) -> None:
    """Only the exact key counted: 67 of 104 had a team."""
    with sections_only("quality", "allocation"), open_bill([mixed(tmp_path)]) as opened:
        made = review_bill(opened, month=OCTOBER, forecast=False)
    assert owners(made) == {
        "ml": pytest.approx(72),
        "search": pytest.approx(30),
        "(no tag)": pytest.approx(2),
    }
    found = {one.key: one.value for one in section(made, "allocation").figures}
    assert found["allocation_tag_1_ratio"] == pytest.approx(102 / 104)
    assert found["allocation_tag_2_ratio"] == pytest.approx(1.0)
    said = section(made, "allocation").sentences[0]
    assert "The tag team is also spelled Team, TEAM; they count as one (team first" in said
    quality = " ".join(section(made, "quality").sentences)
    assert "Keys of tags that differ by case only count as one (team: Team, TEAM; env: ENV)." in quality


def test_exact_tags_keep_keys_apart(tmp_path: Path) -> None:
    made = review(mixed(tmp_path), exact=True)
    assert owners(made) == {"ml": pytest.approx(67), "(no tag)": pytest.approx(37)}
    assert (
        "also spelled Team, TEAM; those charges are not counted" in section(made, "allocation").sentences[0]
    )


def test_spellings_that_are_asked_for_side_by_side_are_apart(tmp_path: Path) -> None:
    with sections_only("allocation"), open_bill([mixed(tmp_path)]) as opened:
        made = review_bill(opened, month=OCTOBER, forecast=False, tags=("team", "Team"))
    found = {one.key: one.value for one in section(made, "allocation").figures}
    assert found["allocation_tag_1_ratio"] == pytest.approx(67 / 104)
    assert found["allocation_tag_2_ratio"] == pytest.approx(33 / 104)


def test_a_forecast_by_a_tag_has_all_spellings_of_its_key(tmp_path: Path) -> None:
    with open_bill([mixed(tmp_path)]) as opened:
        found, exact = (daily_of_bill(opened, "tag:team", exact_tags=apart) for apart in (False, True))
    assert {scope: float(one.cost.sum()) for scope, one in found.items()} == {
        "ml": 72,
        "search": 30,
        "(none)": 2,
    }
    assert {scope: float(one.cost.sum()) for scope, one in exact.items()} == {"ml": 67, "(none)": 37}


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bills of more than 100 rows are large, and 32 of their rows are looked at."""
    monkeypatch.setattr("planner.finops.read.tag_texts.WHOLE_ROWS", 100)
    monkeypatch.setattr("planner.finops.read.tag_texts.SAMPLE_ROWS", 32)


def keys_of(path: Path) -> tuple[str, ...] | None:
    with open_bill([path]) as opened:
        return tag_keys(opened).present


@pytest.mark.usefixtures("sampled")
def test_each_file_tells_how_it_spells_keys(tmp_path: Path) -> None:
    """The texts looked at were the first of the bill: all of one file, whose neighbour spells the key otherwise."""
    for name, key in (("a", "team"), ("b", "Team"), ("c", "TEAM")):
        rows = [charge(date(2026, 10, 1), 1, Tags=f'{{"{key}":"ml","run":"{n}"}}') for n in range(40)]
        write_bill(tmp_path / f"{name}.csv", rows)
    with open_bill([tmp_path]) as opened:
        keys = tag_keys(opened)
    assert set(keys.spellings("team")) == {"team", "Team", "TEAM"}


@pytest.mark.usefixtures("sampled")
def test_a_spelling_from_a_later_day_on_is_found(tmp_path: Path) -> None:
    """The texts looked at were the first of the file."""
    rows = [
        charge(date(2026, 10, 1 + n // 20), 1, Tags=f'{{"{"team" if n < 350 else "Team"}":"{n}","k{n}":"x"}}')
        for n in range(400)
    ]
    found = keys_of(write_bill(tmp_path / "bill.csv", rows))
    assert found is not None and {"team", "Team"} <= {*found} and len(found) == 2 + 32
    assert found == keys_of(tmp_path / "bill.csv")


@pytest.mark.usefixtures("sampled")
def test_what_is_left_out_of_a_bill_spells_no_keys(tmp_path: Path) -> None:
    rows = [
        charge(date(2026, 10, 1), 1, Tags='{"team":"ml"}' if n % 2 else '{"TEAM":"ml"}',
               BillingCurrency="USD" if n % 2 else "EUR")
        for n in range(400)
    ]  # fmt: skip
    with open_bill([write_bill(tmp_path / "bill.csv", rows)], currency="USD") as opened:
        assert tag_keys(opened).present == ("team",)


@pytest.mark.usefixtures("sampled")
def test_a_column_called_like_a_place_in_a_file_is_no_place(tmp_path: Path) -> None:
    """Of such files all rows are read."""
    rows = [charge(date(2026, 10, 1), 1, Tags=f'{{"k{n}":"x"}}', File_Row_Number="7") for n in range(150)]
    path, target = write_bill(tmp_path / "bill.csv", rows), tmp_path / "bill.parquet"
    read = f"READ_CSV('{path}', types = {{'Tags': 'VARCHAR'}})"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM {read}) TO '{target}' (FORMAT parquet)")
    found = keys_of(target)
    assert found is not None and len(found) == 150


@pytest.mark.parametrize(("exact", "ml"), [(False, 72), (True, 67)])
def test_a_use_case_counts_the_spellings_of_its_key(exact: bool, ml: float, tmp_path: Path) -> None:
    with open_bill([mixed(tmp_path)]) as opened:
        made = report_use_case(
            opened, "application_spend", month=OCTOBER, compare=None, tag="team", exact_tags=exact
        )
    costs = {row["application"]: row["billed_cost"] for row in made.rows}
    assert costs["ml"] == pytest.approx(ml) and ("search" in costs) is not exact


def test_runs_are_found_by_all_spellings(tmp_path: Path) -> None:
    rows = [
        charge(date(2026, 10, 1), 8, Tags='{"run_id":"a"}', PricingQuantity=1),
        charge(date(2026, 10, 2), 4, Tags='{"Run_Id":"b"}', PricingQuantity=1),
        charge(date(2026, 10, 3), 2, Tags='{"Run_Id":"c","run_id":"a"}', PricingQuantity=1),
    ]
    with open_bill([write_bill(tmp_path / "runs.csv", rows)]) as opened:
        asked = tag_keys(opened).merged(("run_id",))["run_id"]
        values = {"run_tag": tag_paths(asked), "like_tag": tuple(f'%"{key}"%' for key in asked)}
        frame = query_kpi(opened.engine, "run_cost", values)
    assert dict(zip(frame["run_id"], frame["effective_cost"], strict=True)) == {"a": 10, "b": 4}


def test_several_spellings_need_a_path_or_a_pattern() -> None:
    with pytest.raises(InputError, match=":team is neither a JSON path nor a pattern"):
        bind("SELECT 1 AS one FROM focus WHERE ServiceName = :team", {"team": ("a", "b")})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_several_texts_are_written_for_every_engine(dialect: str) -> None:
    sql = (
        "SELECT JSON_EXTRACT_STRING(Tags, :team) AS team FROM focus "
        "WHERE (Tags LIKE :like OR x_rows = 1) AND NOT ServiceName IN ('a', :names)"
    )
    values = {"team": ('$."team"', '$."Team"'), "like": ('%"a"%', '%"A"%'), "names": ("b", "c")}
    text = emit_sql(sql, dialect, values)
    tree = parse_one(text, read=dialect)
    assert [one.this for one in tree.find_all(exp.Literal) if one.this in ("a", "b", "c")] == ["a", "b", "c"]
    assert len(list(tree.find_all(exp.Like))) == 2 and "team" in text and "Team" in text


def test_keys_that_aws_marks_as_the_users_own(tmp_path: Path) -> None:
    """`user:team` was not `team`: nothing was allocated, and showback gave no team a cent."""
    tags = '{"user:team":"ml","user:env":"prod","user:planner_run_id":"run-1","aws:createdBy":"x"}'
    rows = [
        *each_day(SEPTEMBER, date(2026, 9, 30), Tags=tags),
        *each_day(OCTOBER, date(2026, 10, 31), Tags=tags),
    ]
    path = write_bill(tmp_path / "bill.csv", rows)
    made = review(path)
    assert [(row["owner"], row["tagged"]) for row in rows_of(made, "allocation", "allocation")] == [
        ("ml", 1.0)
    ]
    with open_bill([path]) as opened:
        assert tag_keys(opened).run_key() == "user:planner_run_id"
        assert tag_keys(opened).spelled("createdBy") == "createdBy"
        statement = team_statement(opened, OCTOBER, rules_by_tag("team"), "ml")
        assert list(daily_of_bill(opened, by="tag:team")) == ["ml"]
    assert (statement.values["team"], statement.values["total"]) == ("ml", 3100.0)


def test_keys_with_and_without_a_prefix_are_one_tag(tmp_path: Path) -> None:
    """`team` of one provider beside `user:team` of another: only the first had a team, the rest was nobody's."""
    of = {
        '{"team":"ml","env":"prod"}': 60,
        '{"user:team":"search","user:env":"prod"}': 30,
        '{"labels.Team":"ml","env":"prod"}': 5,
        '{"user:team":"other","team":"ml","env":"prod"}': 3,
        '{"aws:team":"x","env":"prod"}': 2,
    }
    rows = [charge(date(2026, 10, day + 1), cost, Tags=tags) for day, (tags, cost) in enumerate(of.items())]
    path = write_bill(tmp_path / "bill.csv", rows)
    wanted = {"ml": 68.0, "search": 30.0, "(no tag)": 2.0}
    with sections_only("quality", "allocation"), open_bill([path]) as opened:
        made = review_bill(opened, month=OCTOBER, forecast=False)
        by_team = daily_of_bill(opened, by="tag:team")
        paid = {
            team: team_statement(opened, OCTOBER, rules_by_tag("team"), team).values["total"]
            for team in ("ml", "search")
        }
    assert owners(made) == pytest.approx(wanted)
    assert {team: float(one.cost.sum()) for team, one in by_team.items()} == {
        "(none)": 2.0, "ml": 68.0, "search": 30.0,
    }  # fmt: skip
    assert paid == {"ml": 68.0, "search": 30.0}
    assert "The tag team is also spelled user:team, labels.Team" in section(made, "allocation").sentences[0]
    quality = " ".join(section(made, "quality").sentences)
    assert "differ only by case or by a prefix such as user: count as one" in quality
    assert owners(review(path, exact=True)) == pytest.approx({"ml": 63.0, "(no tag)": 37.0})


def test_values_that_only_a_machine_tells_apart_are_named(tmp_path: Path) -> None:
    """Two teams of one name, and nothing said why."""
    values = {"équipe": 5, "e\u0301quipe": 4, "\u200fml": 3, "ml": 2, "Straße": 1, "STRASSE": 1, "فريق": 1}
    made = review(bill(tmp_path, {team: float(cost) for team, cost in values.items()}))
    said = section(made, "allocation").sentences[0]
    assert "Values of team that look like ml, e\u0301quipe differ in invisible or composed characters" in said
    assert "counted apart: write them alike, or count them as one with --map 'plain(Tags)=Tags'." in said
    assert "Stra" not in said and len([cost for cost in owners(made).values() if cost]) == 7
    # letters of another width are no composed ones: the rule does not help
    said = section(review(bill(tmp_path, {"ml": 2.0, "\uff4d\uff4c": 1.0})), "allocation").sentences[0]
    assert "counted apart: write them alike." in said


def named(path: Path, of: dict[str, float], *, exact: bool = False) -> Review:
    """The review of a bill with a charge a day, its tags and costs given."""
    rows = [charge(date(2026, 10, day + 1), cost, Tags=tags) for day, (tags, cost) in enumerate(of.items())]
    with (
        sections_only("quality", "allocation"),
        open_bill([write_bill(path / "named.csv", rows)]) as opened,
    ):
        return review_bill(opened, month=OCTOBER, forecast=False, exact_tags=exact)


OTHER_NAMES = {
    '{"team":"ml","env":"prod"}': 60,
    '{"Owner":"search","Environment":"prod"}': 30,
    '{"user:Owner":"ml","environment":"dev"}': 5,
    '{"Owner":"ml","team":"ML"}': 3,
    '{"Name":"x"}': 2,
}


def test_environment_is_env_and_owner_counts_as_team(tmp_path: Path) -> None:
    """Half of a company said team and env, half Owner and Environment: 63 of 100 had a team, 60 an env."""
    made = named(tmp_path, OTHER_NAMES)
    assert owners(made) == {"ml": 68, "search": 30, "(no tag)": 2}
    found = {one.key: one.value for one in section(made, "allocation").figures}
    assert (found["allocation_tag_1_ratio"], found["allocation_tag_2_ratio"]) == pytest.approx((0.98, 0.95))
    said = section(made, "allocation").sentences[0]
    assert "The tag env is also spelled Environment, environment; they count as one (env first" in said
    assert "Owner, user:Owner count as team where a charge has none; --exact-tags counts team alone." in said
    said = " ".join(section(made, "quality").sentences)
    assert "differ in spelling or name count as one (team: Owner, user:Owner; env: Environment" in said
    assert owners(named(tmp_path, OTHER_NAMES, exact=True)) == {"ml": 60, "ML": 3, "(no tag)": 37}
    with open_bill([tmp_path / "named.csv"]) as opened:
        by_team = daily_of_bill(opened, by="tag:team")
        rules = rules_by_tag(*tag_keys(opened).spellings("team"))
        paid = [team_statement(opened, OCTOBER, rules, one).values["total"] for one in ("ml", "search")]
    assert {team: float(one.cost.sum()) for team, one in by_team.items()} == {
        "ml": 68,
        "search": 30,
        "(none)": 2,
    }
    assert paid == [68, 30] and [one.from_tag for one in rules.rules] == ["team", "Owner"]


def test_a_forecast_by_a_tag_says_which_names_count(tmp_path: Path) -> None:
    rows = [charge(date(2026, 10, n), 1, Tags=tags) for n, tags in enumerate(OTHER_NAMES, 1)]
    path = str(write_bill(tmp_path / "bill.csv", rows))
    said = [read_costs([path], None, ["tag:team"], exact_tags=exact).findings for exact in (False, True)]
    assert said[0][-1] == "warning: Owner, user:Owner count as team where a charge has none"
    assert not any("Owner" in one for one in said[1])


def test_owner_stands_in_for_a_team_that_no_charge_names(tmp_path: Path) -> None:
    made = named(tmp_path, {'{"Owner":"search","Environment":"prod"}': 7, '{"Environment":"dev"}': 3})
    assert owners(made) == {"search": 7, "(no tag)": 3}
    said = section(made, "allocation").sentences[0]
    assert said.startswith("70.0 % of the cost that can be tagged carries Owner and Environment")
    assert "No charge carries the tag team: Owner counts in its place." in said
    with open_bill([tmp_path / "named.csv"]) as bill:  # what was asked for is there: nothing to say
        keys = tag_keys(bill)
    assert keys.remark(["Owner"], {}) == keys.names_remark("Owner") == ""
    assert keys.remark(["team"], {}) == keys.names_remark("team") != ""


@pytest.mark.parametrize(
    "of",
    [
        {'{"team":"ml","Owner":"lee"}': 6, '{"Owner":"kim"}': 4},
        {'{"team":"ml"}': 6, '{"Owner":"kim@example.com"}': 4},
        {'{"team":"ml","Owner":"ML"}': 6, '{"Owner":"kim@example.com"}': 3, '{"Owner":"lee@example.com"}': 1},
    ],
)
def test_an_owner_who_is_no_team_is_not_counted_as_one(of: dict[str, float], tmp_path: Path) -> None:
    made = named(tmp_path, of)
    assert owners(made) == {"ml": 6, "(no tag)": 4}
    said = section(made, "allocation").sentences[0]
    assert (
        "Owner names something else than team and is not counted as it: ask for Owner to count by it." in said
    )


def test_people_are_no_teams_where_no_charge_names_a_team(tmp_path: Path) -> None:
    made = named(tmp_path, {'{"Owner":"jane@example.com"}': 6, '{"user:Owner":"kim@example.com"}': 4})
    assert owners(made) == {"(no tag)": 10}
    said = section(made, "allocation").sentences[0]
    assert "No charge carries the tag team or env; the keys present are Owner, user:Owner." in said
    assert "Owner, user:Owner name something else than team and are not counted as it" in said


def test_a_cube_counts_owners_as_its_bill_does(tmp_path: Path) -> None:
    """Each resource counted: beside three of a team that has its name the bill took Owner for team, the cube not."""
    tags = [f'"team":"ml","Owner":"ml","Name":"{name}"' for name in "abc"]
    tags += ['"team":"ml","Owner":"lee"', '"team":"search","Owner":"kim"', '"Owner":"ads"']
    rows = [charge(date(2026, 10, n), 1, Tags=f"{{{one}}}") for n, one in enumerate(tags, 1)]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as opened:
        keys = tag_keys(opened)
        build_cube(opened, tmp_path / "cube", tags=("team", "Owner"))
    with open_cube([tmp_path / "cube"]) as opened:
        assert tag_keys(opened).apart == keys.apart == {"team": ("Owner",)}


def test_a_name_that_is_asked_for_is_a_tag_of_its_own(tmp_path: Path) -> None:
    rows = [charge(date(2026, 10, n), 1, Tags=tags) for n, tags in enumerate(OTHER_NAMES, 1)]
    with sections_only("allocation"), open_bill([write_bill(tmp_path / "bill.csv", rows)]) as opened:
        made = review_bill(opened, month=OCTOBER, forecast=False, tags=("team", "owner"))
    found = {one.key: one.value for one in section(made, "allocation").figures}
    assert found["allocation_tag_1_ratio"] == pytest.approx(
        0.4
    )  # another spelling of Owner is no team either
    assert found["allocation_tag_2_ratio"] == pytest.approx(0.6)


def test_dashes_and_underscores_make_no_other_key(tmp_path: Path) -> None:
    """Labels of Google Cloud cannot be spelled as tags of AWS are: two clouds, two keys."""
    rows = [
        charge(date(2026, 10, n), 1, Tags=f'{{"{key}":"c{n}"}}')
        for n, key in enumerate(("cost-center", "CostCenter", "user:Cost_Center", "cost"), 1)
    ]
    with sections_only("allocation"), open_bill([write_bill(tmp_path / "bill.csv", rows)]) as opened:
        made = review_bill(opened, month=OCTOBER, forecast=False, tags=("cost-center",))
    found = {one.key: one.value for one in section(made, "allocation").figures}
    assert found["allocation_tag_1_ratio"] == pytest.approx(0.75)
