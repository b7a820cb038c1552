"""One rule for values of a tag that differ in spelling only: in Python, in the engine, in forecasts and in showback."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from planner.errors import InputError
from planner.finops.forecast.bill import daily_of_bill
from planner.finops.read import open_bill
from planner.finops.read.tag_keys import dearest_spellings, known_spelling
from planner.finops.showback.statement import rules_by_tag, team_statement
from planner.inputs.showback_load import load_showback
from tests.conftest import CliResult
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, write_bill

FIRST, LAST = date(2026, 7, 1), date(2026, 10, 31)
COSTS = {
    "ML-Platform": 50.0, "ml_platform": 30.0, "ML  Platform": 15.0, "mlplatform": 4.0, "search": 7.0,
    "Team 1-2": 3.0, "team_1_2": 2.0, "team-12": 1.0, "-": 1.0, "_": 2.0, "a.b": 1.0, "ab": 1.0,
}  # fmt: skip
LONG = ",".join(
    f'"key-{number}":"a value of some length"' for number in range(8)
)  # tags of more than 150 characters


def tags(team: str, more: str = "") -> str:
    return f'{{"team":{json.dumps(team)},"env":"prod"{"," + more if more else ""}}}'


def written(path: Path, more: str = "") -> Path:
    rows = [charge(date(2026, 10, 5), cost, Tags=tags(team, more)) for team, cost in COSTS.items()]
    rows += [charge(date(2026, 9, 5), 9, Tags=tags("ml platform", more))]
    return write_bill(path / "bill.csv", rows)


def owners(path: Path) -> dict[str, float]:
    made = review_of(path, only=("allocation",), month=date(2026, 10, 1))
    return {row["owner"]: row["cost"] for row in rows_of(made, "allocation", "allocation") if row["cost"]}


@pytest.mark.parametrize("more", ["", LONG])
def test_engine_forecast_and_statements_join_the_same_values(more: str, tmp_path: Path) -> None:
    """Long tag texts are read in each row, short ones once for all rows that share them; the answer is the same."""
    path = written(tmp_path, more)
    shown = owners(path)
    names = dearest_spellings(COSTS)
    expected: dict[str, float] = {}
    for team, cost in COSTS.items():
        expected[names[team]] = expected.get(names[team], 0.0) + cost
    assert shown == pytest.approx(expected)
    assert shown["ML-Platform"] == pytest.approx(99) and shown["Team 1-2"] == pytest.approx(5)
    with open_bill([path]) as bill:
        daily = {scope: float(one.cost[-1]) for scope, one in daily_of_bill(bill, "tag:Team").items()}
        apart = daily_of_bill(bill, "tag:team", exact_tags=True)
        made = team_statement(bill, None, rules_by_tag("team"), "mlPlatform").values
        before = team_statement(bill, date(2026, 9, 1), rules_by_tag("team"), "mlPlatform").values
    assert daily == pytest.approx(expected)
    assert {"ML-Platform", "ml_platform", "mlplatform"} <= set(apart)
    assert (made["team"], made["total"], before["total"]) == ("ML-Platform", 99.0, 9.0)


def test_names_of_the_rules_count_before_those_of_the_bill(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "version: 1\nkind: showback\nrules:\n  - {team: Search, when: {service: [S3]}}\n"
        "  - {from_tag: team, rename: {Ml Platform: models}}\nsplit:\n  - {team: a_b, by: cost}\n"
    )
    file = load_showback(rules)
    rows = [charge(date(2026, 10, 5), cost, Tags=tags(team)) for team, cost in COSTS.items()]
    rows.append(charge(date(2026, 10, 5), 1, ServiceName="S3"))
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        assert team_statement(bill, None, file, "models").values["team"] == "models"
        found = team_statement(bill, None, file, "SEARCH").values
        assert (found["team"], found["bill_total"]) == ("Search", 118.0)
        assert (
            8.0 < found["total"] < 8.2
        )  # search of the tag, the rule's own, and a part of a_b, which ab is too
        with pytest.raises(InputError, match="no charge of 2026-10 is of this team"):
            team_statement(bill, None, file, "SEARCH", exact_tags=True)


def test_what_people_ask_for_is_found_in_any_spelling(
    tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    rows = each_day(FIRST, LAST, 60, Tags=tags("ML-Platform")) + each_day(
        FIRST, LAST, 40, Tags=tags("ml_platform")
    )
    bill = write_bill(tmp_path / "bill.csv", rows + each_day(FIRST, LAST, 10, Tags=tags("search")))
    budget = tmp_path / "budgets.yaml"
    head = "version: 1\nkind: budget\nname: b\ncurrency: USD\nbudgets:\n"
    line = "  - {name: %s, by: 'tag:team', scope: %s, period: month, amount: 3050}\n"
    budget.write_text(head + line % ("one", "ml platform"))
    made = run_cli("budget", str(budget), "--focus", str(bill), "-o", "json")
    assert made.code == 5 and json.loads(made.stdout)["lines"][0]["actual_to_date"] == pytest.approx(3100)
    budget.write_text(head + line % ("one", "ml platform") + line % ("two", "ML-Platform"))
    refused = run_cli("budget", str(budget), "--focus", str(bill))
    assert (
        refused.code == 2
        and "'ML-Platform' and 'ml platform' are two spellings of one value" in refused.stderr
    )
    ask = ("forecast", "--focus", str(bill), "--by", "tag:team", "-o", "json")
    told = json.loads(run_cli(*ask, "--scenario", "mlplatform:price=-50%").stdout)
    costs = {one["scope"]: one["periods"][1]["expected"] for one in told["scopes"]}
    assert costs["ML-Platform"] == pytest.approx(50 * 31, rel=0.02) and set(costs) == {
        "total",
        "ML-Platform",
        "search",
    }
    apart = json.loads(run_cli(*ask, "--exact-tags").stdout)
    assert {one["scope"] for one in apart["scopes"]} == {"total", "ML-Platform", "ml_platform", "search"}


def test_a_value_that_two_spellings_fit_stays_as_asked() -> None:
    assert known_spelling("mlplatform", ["ML-Platform", "ml_platform"]) == "mlplatform"
    assert known_spelling("ml_platform", ["ML-Platform", "ml_platform"]) == "ml_platform"


@pytest.mark.parametrize(
    ("cell", "tags"),
    [
        ('[{"key":"team","value":"rl","inherited":false},{"key":"env","value":"prod"}]', '{"team":"rl","env":"prod"}'),
        ("[]", "{}"), ('{"team":"rl"}', '{"team":"rl"}'), ("", None),
    ],
)  # fmt: skip
def test_tags_may_be_a_list_of_pairs_in_a_csv(tmp_path: Path, cell: str, tags: str | None) -> None:
    """As BigQuery exports its FOCUS view to CSV: nested columns go through TO_JSON_STRING, and no tag was found."""
    path = write_bill(tmp_path / "bill.csv", [charge(date(2026, 10, 1), Tags=cell)])
    with open_bill([path]) as bill:
        (found,) = bill.engine.query("SELECT Tags FROM focus")["Tags"]
        assert (found if isinstance(found, str) else None) == tags
        assert not bill.findings


def test_a_list_that_holds_no_pairs_is_no_tags(tmp_path: Path) -> None:
    path = write_bill(tmp_path / "bill.csv", [charge(date(2026, 10, 1), Tags='["team"]')])
    with open_bill([path]) as bill:
        assert [finding.code for finding in bill.findings] == ["bad_cells"]


def own_clock(path: Path, offset: str, *, hours: int = 24, periods: bool = True) -> Path:
    """Charges of a clock ahead of UTC: 1 an hour from 1 September to 31 October."""
    names = "ChargePeriodStart,ChargePeriodEnd,BilledCost,ChargeCategory,BillingCurrency"
    lines = [names + (",BillingPeriodStart" if periods else "")]
    at, end = datetime(2026, 9, 1), datetime(2026, 11, 1)
    while at < end:
        more = f",{at:%Y-%m}-01T00:00:00{offset}" if periods else ""
        lines.append(
            f"{at.isoformat()}{offset},{(at + timedelta(hours=hours)).isoformat()}{offset},{hours},Usage,USD{more}"
        )
        at += timedelta(hours=hours)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def months(path: Path) -> dict[str, float]:
    with open_bill([path]) as bill:
        rows = bill.engine.rows(
            "SELECT STRFTIME(x_month, '%m'), SUM(BilledCost) FROM focus GROUP BY 1 ORDER BY 1"
        )
        assert [one.code for one in bill.findings if one.code == "bad_cells"] == []
    return {str(month): float(cost) for month, cost in rows}


def test_days_of_a_bill_with_a_clock_of_its_own_are_its_days(tmp_path: Path) -> None:
    """A month's fee of 1 October in Hangzhou was counted in September."""
    whole = {"09": 720.0, "10": 744.0}
    for number, offset in enumerate(("+08:00", "-0700", "+08")):
        assert months(own_clock(tmp_path / f"{number}.csv", offset)) == whole
    assert months(own_clock(tmp_path / "periods.csv", "+02:00", hours=8)) == whole
    assert months(own_clock(tmp_path / "utc.csv", "Z")) == whole
    wide = own_clock(tmp_path / "wide.csv", "+08:00")
    wide.write_bytes(wide.read_text(encoding="utf-8").encode("utf-16"))
    assert months(wide) == whole
    london = own_clock(tmp_path / "london.csv", "+01:00")
    london.write_text(
        london.read_text(encoding="utf-8").replace("10-31T00:00:00+01:00", "10-31T00:00:00+00:00")
    )
    assert months(london) == whole
    # hours by the hour name no days: they are moments, in UTC
    hourly = own_clock(tmp_path / "hourly.csv", "+02:00", hours=1, periods=False)
    assert months(hourly) == {"08": 2.0, "09": 720.0, "10": 742.0}


def test_files_of_one_export_have_one_clock(tmp_path: Path) -> None:
    """The part of a last day, or of a winter in London, was read by another clock than the parts before it."""
    own_clock(tmp_path / "a.csv", "+08:00")
    header = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[0]
    rows = [
        f"2026-11-01T0{hour}:15:00+08:00,2026-11-01T0{hour}:45:00+08:00,1,Usage,USD,2026-11-01T00:00:00+08:00"
        for hour in range(6)
    ]
    (tmp_path / "b.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    found = days_of(tmp_path)
    assert len(found) == 30 + 31 + 1 and found[date(2026, 11, 1)] == 6


def test_each_export_keeps_its_own_clock(tmp_path: Path) -> None:
    """Hours of another export are moments in UTC, however many midnights its neighbour has."""
    own_clock(tmp_path / "days.csv", "+08:00")
    own_clock(tmp_path / "hours.csv", "+02:00", hours=1, periods=False)
    utc = own_clock(tmp_path / "utc.csv", "Z")  # the columns of days.csv, without an offset
    assert months(tmp_path / "days.csv") == months(utc) == {"09": 720.0, "10": 744.0}
    with open_bill([tmp_path]) as bill:
        named = [one.where for one in bill.findings if one.code == "spelling"]
    assert named == [str(tmp_path / "days.csv")]


def test_json_has_a_clock_too(tmp_path: Path) -> None:
    """Days of +09:00 were those of UTC: 31 October had no use, and a month's fee was of the month before."""
    rows = [
        {
            "ChargePeriodStart": f"{day}T00:00:00+09:00", "BilledCost": 24.0, "ChargeCategory": "Usage",
            "BillingCurrency": "KRW", "Tags": {"team": "ml"},
        }
        for day in (date(2026, 9, 1) + timedelta(n) for n in range(61))
    ]  # fmt: skip
    for name, text in (("a.json", json.dumps(rows)), ("b.jsonl", "\n".join(map(json.dumps, rows)))):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with open_bill([tmp_path / name]) as bill:
            found = bill.engine.rows(
                "SELECT x_month, SUM(BilledCost), MIN(Tags) FROM focus GROUP BY 1 ORDER BY 1"
            )
            assert [one.code for one in bill.findings if one.code in ("spelling", "bad_cells")] == [
                "spelling"
            ]
        tags = '{"team":"ml"}'
        assert found == [(date(2026, 9, 1), 720.0, tags), (date(2026, 10, 1), 744.0, tags)]


def days_of(path: Path) -> dict[date, float]:
    """Billed cost by day."""
    with open_bill([path]) as bill:
        rows = bill.engine.rows("SELECT x_day, SUM(BilledCost) FROM focus GROUP BY 1")
    return {day: float(cost) for day, cost in rows}


@pytest.mark.parametrize(
    ("encoding", "names"),
    [("gb18030", ("云服务器", "华东1（杭州）")), ("cp1252", ("Rechenzentrum Köln", "Müller", "déjà"))],
)
def test_text_that_is_not_utf8(encoding: str, names: tuple[str, ...], tmp_path: Path) -> None:
    path = write_bill(tmp_path / "bill.csv", [charge(date(2026, 10, 5), ServiceName=name) for name in names])
    path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    with open_bill([path]) as bill:
        found = [name for (name,) in bill.engine.rows("SELECT ServiceName FROM focus")]
        assert (sorted(found), [one.code for one in bill.findings]) == (sorted(names), ["encoding"])


@pytest.mark.parametrize(
    "day",
    [
        "Oct 15, 2026",
        "October 15, 2026",
        "15 Oct 2026",
        "15 October 2026",
        "15-Oct-2026",
        "15-OCT-26",
        "Oct 15, 26",
        "2026-10-15 ",
        "Oct 15 2026",
        "10/15/2026 12:00 AM",
        "10/15/26 11:59:59 PM",
        "15.10.26",
        "2026.10.15",
        "20261015T080000Z",
    ],
)
def test_days_with_the_name_of_their_month(day: str, tmp_path: Path) -> None:
    """An invoice's lines were of no month at all."""
    row = charge(date(2026, 10, 1)) | {"ChargePeriodStart": day, "ChargePeriodEnd": ""}
    with open_bill([write_bill(tmp_path / "bill.csv", [row])]) as bill:
        assert bill.engine.rows("SELECT x_day FROM focus") == [(date(2026, 10, 15),)]


@pytest.mark.parametrize("parquet", [False, True])
def test_words_of_the_first_preview_of_focus(parquet: bool, tmp_path: Path) -> None:
    """FOCUS 1.0-preview, which Azure and Oracle export, had no CommitmentDiscountStatus and no price called Standard.

    No use was steady, no commitment was known to be used, and quantities were unknown.
    """
    used = {"CommitmentDiscountId": "r-1", "PricingCategory": "Commitment-Based", "UsageQuantity": "24"}
    rows = [
        charge(
            date(2026, 10, 1),
            5,
            PricingCategory="On-Demand",
            ChargeSubcategory="On-Demand",
            UsageQuantity="24",
        ),
        charge(date(2026, 10, 1), 6, ChargeSubcategory="Used Commitment", **used),
        charge(date(2026, 10, 1), 7, ChargeSubcategory="Unused Commitment", **used),
        charge(date(2026, 10, 1), -8, ChargeCategory="Adjustment", ChargeSubcategory="Refund"),
    ]
    path = write_bill(tmp_path / "preview.csv", rows)
    if parquet:
        with duckdb.connect() as connection:
            connection.execute(f"COPY (FROM '{path}') TO '{tmp_path / 'preview.parquet'}'")
        path = tmp_path / "preview.parquet"
    with open_bill([path]) as bill:
        found = bill.engine.query(
            "SELECT PricingCategory, CommitmentDiscountStatus, ConsumedQuantity FROM focus ORDER BY BilledCost"
        )
    assert found["PricingCategory"].tolist() == ["Standard", "Standard", "Committed", "Committed"]
    assert [one if one == one else None for one in found["CommitmentDiscountStatus"]] == [
        None,
        None,
        "Used",
        "Unused",
    ]
    assert found["ConsumedQuantity"].tolist()[1:] == [24, 24, 24]
