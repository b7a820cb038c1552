"""Columns named with `--map`, kept in a mapping file."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import pytest

from planner.errors import InputError
from planner.finops.forecast.source import read_costs
from planner.finops.read import open_bill
from planner.finops.read.mapping import read_mapping
from tests.conftest import CliResult
from tests.planner.finops.small_bill import charge, write_bill

PAIRS = ("started=ChargePeriodStart", "usd=BilledCost", "gpu=ServiceName", "'Usage'=ChargeCategory",
         "'USD'=BillingCurrency")  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A neocloud's export in its own columns."""
    path = tmp_path / "own.csv"
    path.write_text("started,gpu,usd\n" + "".join(f"2026-10-{day:02},H100,50\n" for day in range(1, 32)))
    return path


def test_an_export_of_ones_own_is_reviewed_and_its_columns_are_kept(
    own: Path, tmp_path: Path, run_cli: Callable[..., CliResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = str(tmp_path / "columns.csv")
    given = [word for pair in PAIRS for word in ("--map", pair)]
    found = run_cli("review", "--focus", str(own), *given, "--map-file", kept, "--no-forecast", "-o", "md")
    assert found.code == 0 and "October 2026 cost 1,550 USD" in found.stdout
    again = run_cli("review", "--focus", str(own), "--map-file", kept, "--no-forecast", "-o", "md")
    assert again.code == 0 and "October 2026 cost 1,550 USD" in again.stdout
    assert read_mapping((), Path(kept))["ChargeCategory"] == "'Usage'"
    monkeypatch.chdir(tmp_path)  # a brief names no command with a path that is longer than a message
    brief = run_cli(
        "review", "--focus", own.name, "--map-file", "columns.csv", "--no-forecast", "-o", "brief"
    ).stdout
    assert "--map-file columns.csv" in brief and "--map " not in brief  # each command repeated all pairs


def test_columns_of_ones_own_are_tags(own: Path, tmp_path: Path, run_cli: Callable[..., CliResult]) -> None:
    """A neocloud's invoice names a project, and no tag: no cost had a team."""
    rows = own.read_text().splitlines()
    own.write_text(
        "\n".join(
            [f"{rows[0]},project", *(f"{row},{'ml' if at % 3 else ''}" for at, row in enumerate(rows[1:]))]
        )
    )
    tags, kept = ("project=Tags.team", "'prod'=Tags.env"), tmp_path / "columns.csv"
    with open_bill([own], mapping=read_mapping((*PAIRS, *tags), kept)) as bill:
        assert not [one for one in bill.findings if one.code == "unused_mapping"]
        teams = bill.engine.query(
            "SELECT JSON_EXTRACT_STRING(Tags, '$.team') AS team, JSON_EXTRACT_STRING(Tags, '$.env') AS env, "
            "SUM(BilledCost) AS cost FROM focus GROUP BY 1, 2 ORDER BY cost"
        )
    assert teams["cost"].tolist() == [550, 1000] and teams["env"].tolist() == ["prod", "prod"]
    assert teams["team"].isna().tolist() == [True, False]
    found = run_cli("review", "--focus", str(own), "--map-file", str(kept), "--no-forecast", "-o", "md")
    assert "| ml | 1,000.00 USD | 64.5 % |" in found.stdout
    with pytest.raises(
        InputError, match=r"--map projcet=Tags\.team: no file has a column .*did you mean 'project'"
    ):
        open_bill([own], mapping=read_mapping(("projcet=Tags.team",), None))


def test_tags_and_one_of_them_are_no_mapping() -> None:
    """The column of Tags was read, and that of the one tag left out without a word."""
    with pytest.raises(InputError, match=r"--map project=Tags\.team: beside labels=Tags"):
        read_mapping(("labels=Tags", "project=Tags.team"), None)


def test_a_focus_file_beside_it_is_left_alone(own: Path, tmp_path: Path) -> None:
    other = tmp_path / "focus.csv"
    other.write_text(
        "ChargePeriodStart,BilledCost,EffectiveCost,ChargeCategory,BillingCurrency\n2026-10-01,3,3,Tax,USD\n"
    )
    with open_bill([own, other], mapping=read_mapping(PAIRS, None)) as bill:
        rows = bill.engine.query(
            "SELECT ChargeCategory, SUM(BilledCost) AS cost FROM focus GROUP BY ChargeCategory"
        )
        assert dict(zip(rows["ChargeCategory"], rows["cost"], strict=True)) == {"Usage": 1550.0, "Tax": 3.0}
        assert bill.months == (date(2026, 10, 1),)


def test_faults_name_place_and_remedy(own: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name its columns with --map COLUMN=ChargePeriodStart"):
        open_bill([own])
    with pytest.raises(InputError, match=r"--map usd=BiledCost: .*did you mean 'BilledCost'"):
        read_mapping(("usd=BiledCost",), None)
    with pytest.raises(InputError, match="--map usd: write YOUR_COLUMN=FocusColumn"):
        read_mapping(("usd",), None)
    with pytest.raises(InputError, match=r"--map-file .*none\.csv: no such file"):
        read_mapping((), tmp_path / "none.csv")
    with pytest.raises(InputError, match="--map names columns of a bill"):
        read_costs([], own, ("total",), mapping=read_mapping(PAIRS, None))
    (tmp_path / "bad.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=r"bad\.csv:1: a mapping file has the columns column, focus"):
        read_mapping((), tmp_path / "bad.csv")


@pytest.mark.parametrize("form", ["csv", "parquet", "map"])
def test_values_that_look_alike_are_one_by_a_rule(
    form: str, tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    """Two teams of one name could only be told, not counted as one."""
    teams = {"équipe": 50, "e\u0301quipe": 40, "\u200fml": 30, "ml": 20, "m\u00adl": 10}
    rows = [
        charge(
            date(2026, 10, 1 + day),
            cost,
            Tags=json.dumps({"team": team, "n": day}, ensure_ascii=day % 2 == 0),
        )
        for day, (team, cost) in enumerate(teams.items())
    ]
    path = write_bill(tmp_path / "bill.csv", rows)
    if form != "csv":
        tags = "Tags" if form == "parquet" else "MAP {'team': Tags ->> 'team'} AS Tags"
        with duckdb.connect() as connection:
            table = connection.sql(
                f"SELECT * REPLACE ({tags.removesuffix(' AS Tags')} AS Tags) FROM '{path}'"
            )
            path = tmp_path / "bill.parquet"
            table.write_parquet(str(path))
    kept = tmp_path / "columns.csv"

    def paid(**mapping: str) -> dict[str, float]:
        with open_bill([path], mapping=mapping) as bill:
            found = bill.engine.query(
                "SELECT JSON_EXTRACT_STRING(Tags, :tag) AS team, SUM(BilledCost) AS cost FROM focus "
                "GROUP BY JSON_EXTRACT_STRING(Tags, :tag)",
                {"tag": '$."team"'},
            )
        return dict(zip(found["team"], found["cost"], strict=True))

    assert paid() == teams
    rule = "plain(Tags)=Tags"
    assert paid(**read_mapping((rule,), kept)) == {"équipe": 90, "ml": 60}
    assert read_mapping((), kept) == {"Tags": "plain(Tags)"}
    shown = run_cli("review", "--focus", str(path), "--map-file", str(kept), "--no-forecast", "-o", "md")
    assert shown.code == 0 and "look like" not in shown.stdout and "équipe" in shown.stdout


def test_a_rule_finds_a_column_of_another_spelling_and_is_named_as_it_works(
    tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    """`--map 'plain(Tags)=Tags'`, which the review names, did nothing where the column is `tags` or mapped."""
    rows = [
        charge(date(2026, 10, 1 + n), 1, Tags=json.dumps({"team": t}))
        for n, t in enumerate(("ml", "m\u00adl"))
    ]
    path = write_bill(tmp_path / "bill.csv", rows)
    cells = path.read_text(encoding="utf-8")
    assert cells.count("Tags") == 1
    for name, given in (("tags", []), ("labels of mine", ["--map", "labels of mine=Tags"])):
        path.write_text(cells.replace("Tags", name), encoding="utf-8")
        asked = ("review", "--focus", str(path), "--no-forecast", "-o", "md")
        shown = run_cli(*asked, *given)
        column = "labels of mine" if given else "Tags"
        rule = f"plain({column})=Tags"
        assert shown.code == 0 and f"--map '{rule}'" in shown.stdout
        shown = run_cli(*asked, "--map", rule)
        assert shown.code == 0 and "look like" not in shown.stdout


def test_a_rule_leaves_other_texts_as_they_are(tmp_path: Path) -> None:
    """Numbers among texts are no JSON to be written again, and a tag that is no JSON is reported as before."""
    rows = [charge(date(2026, 10, 1), 1, SubAccountName="1e5", Tags="{team}")]
    path = write_bill(tmp_path / "bill.csv", rows)
    mapping = read_mapping(("plain(SubAccountName)=SubAccountName", "plain(Tags)=Tags"), None)
    with open_bill([path], mapping=mapping) as bill:
        assert bill.engine.rows("SELECT SubAccountName, Tags FROM focus") == [("1e5", None)]
        assert [one.code for one in bill.findings] == ["bad_cells"]


def test_a_mapping_that_no_file_takes_is_named(own: Path, tmp_path: Path) -> None:
    pairs = (*PAIRS, "regoin=RegionId", "'x'=ServiceCategory")
    with open_bill([own], mapping=read_mapping(pairs, None)) as bill:
        said = [one.message for one in bill.findings if one.code == "unused_mapping"]
    assert said == ["--map regoin=RegionId: no file has a column 'regoin'; there are started, gpu, usd"]
    for slip, close in (("usb=BilledCost", "usd"), ("Usd=BilledCost", "usd")):
        with pytest.raises(
            InputError, match=rf"--map {slip}: no file has a column .* \(did you mean '{close}'"
        ):
            open_bill([own], mapping=read_mapping(("started=ChargePeriodStart", slip), None))


def test_a_constant_for_a_column_that_the_file_has_is_named(own: Path) -> None:
    own.write_text(own.read_text().replace("gpu", "ServiceName"))
    pairs = ("started=ChargePeriodStart", "usd=BilledCost", "'USD'=BillingCurrency", "'x'=ServiceName")
    with open_bill([own], mapping=read_mapping(pairs, None)) as bill:
        said = [one.message for one in bill.findings if one.code == "unused_mapping"]
    assert said == ["--map 'x'=ServiceName: is not used: a file has the column ServiceName itself"]


def test_a_mapping_of_one_of_two_files_is_in_use(own: Path, tmp_path: Path) -> None:
    other = tmp_path / "focus.csv"
    other.write_text(
        "ChargePeriodStart,BilledCost,EffectiveCost,ChargeCategory,BillingCurrency\n2026-10-01,3,3,Tax,USD\n"
    )
    with open_bill([own, other], mapping=read_mapping(PAIRS, None)) as bill:
        assert not [one for one in bill.findings if one.code == "unused_mapping"]
