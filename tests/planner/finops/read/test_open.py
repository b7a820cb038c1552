"""Opening bills: every version, every shape of file, and what goes wrong with each."""

from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path

import duckdb
import pytest

from planner.errors import InputError
from planner.finops.quality import assess_quality
from planner.finops.read import Bill, open_bill
from planner.finops.read.columns import VERSIONS, detect_version, focus_columns
from tests.focus_company import Truth, make_company, write_version

HEADER = (
    "BillingAccountId,BillingCurrency,BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,"
    "ChargeCategory,BilledCost,EffectiveCost,ListCost,ContractedCost,ProviderName,ServiceName,SkuId,Tags"
)


def line(
    cost: object = "1.5", *, day: str = "2026-10-03", currency: str = "USD", sku: str = "s1", tags: str = ""
) -> str:
    start = f"{day}T00:00:00Z"
    return f"a1,{currency},2026-10-01,2026-11-01,{start},{day}T01:00:00Z,Usage,{cost},{cost},2,2,P,S,{sku},{tags}"


def write(path: Path, *lines: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def total(bill: Bill) -> tuple[float, int]:
    row = bill.engine.query("SELECT SUM(BilledCost) AS cost, COUNT(*) AS n FROM focus").iloc[0]
    return float(row["cost"]), int(row["n"])


def codes(bill: Bill) -> list[str]:
    return [finding.code for finding in bill.findings]


@pytest.mark.parametrize(
    ("version", "count"), [("1.0", 43), ("1.1", 50), ("1.2", 57), ("1.3", 65), ("1.4", 65)]
)
def test_versions_have_the_columns_of_the_specification(version: str, count: int) -> None:
    columns = focus_columns()["CostAndUsage"].values()
    own = [c.name for c in columns if c.since <= version and (not c.until or c.until >= version)]
    assert len(own) == count
    assert detect_version(own) == version


@pytest.fixture(scope="module")
def company() -> Truth:
    return make_company(2, seed=3, rows_per_month=500)


@pytest.mark.parametrize(
    ("version", "fmt"), [*((version, "parquet") for version in VERSIONS), ("1.0", "csv"), ("1.4", "csv.gz")]
)
def test_every_version_and_format_gives_the_same_sums(
    company: Truth, version: str, fmt: str, tmp_path: Path
) -> None:
    truth = write_version(company, version, tmp_path, fmt=fmt)
    with open_bill([tmp_path]) as bill:
        costs = bill.engine.query(
            "SELECT x_month, SUM(EffectiveCost) AS cost FROM focus WHERE ChargeCategory <> 'Tax' "
            "GROUP BY x_month ORDER BY x_month"
        )
        assert list(costs["cost"]) == pytest.approx(
            [truth.month[month].effective for month in bill.months], abs=0.01
        )
        assert {source.focus_version for source in bill.sources if source.dataset == "CostAndUsage"} == {
            version
        }
        assert bill.currency == "USD"
        assert bill.months == truth.months
        assert [f.code for f in bill.findings if f.severity == "error"] == []


def test_a_provider_of_one_version_feeds_the_other(tmp_path: Path) -> None:
    with open_bill([write(tmp_path / "a.csv", line())]) as bill:
        row = bill.engine.query(
            "SELECT ProviderName, ServiceProviderName, CommitmentProgramEligibilityDetails FROM focus"
        )
        assert list(row.iloc[0])[:2] == ["P", "P"]
        assert row.iloc[0].isna().iloc[2]


def test_helpers_of_the_view(tmp_path: Path) -> None:
    lines = [line(), line("3").replace(",2,2,P", ",0,,P")]
    with open_bill([write(tmp_path / "a.csv", *lines)]) as bill:
        row = bill.engine.query(
            "SELECT x_month, x_day, x_list_known, x_contracted_known, x_focus_version, x_source "
            "FROM focus ORDER BY BilledCost"
        )
        assert str(row["x_month"][0])[:10] == "2026-10-01"
        assert str(row["x_day"][0])[:10] == "2026-10-03"
        assert list(row["x_list_known"]) == [True, False]  # 0 for something that was charged is not a price
        assert list(row["x_contracted_known"]) == [True, False]
        assert row["x_focus_version"][0] == "1.0"
        assert row["x_source"][0].endswith("a.csv")


def test_parquet_is_read_where_it_lies_and_an_empty_text_is_no_value(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    duckdb.connect().sql(
        "SELECT TIMESTAMPTZ '2026-10-31 23:30:00-02:00' AS ChargePeriodStart, 1.25::DECIMAL(10, 2) AS BilledCost, "
        "2.5 AS EffectiveCost, '' AS CommitmentDiscountId, MAP {'team': 'a'} AS Tags, 'EUR' AS BillingCurrency"
    ).write_parquet(str(path))
    with open_bill([path]) as bill:
        row = bill.engine.query(
            "SELECT BilledCost, CommitmentDiscountId, x_month, "
            "json_extract_string(Tags, '$.\"team\"') AS team FROM focus"
        ).iloc[0]
        assert (row["BilledCost"], row["team"], bill.currency) == (1.25, "a", "EUR")
        assert row.isna()["CommitmentDiscountId"]
        assert bill.months == (date(2026, 11, 1),)  # UTC


def test_folders_globs_and_marks_of_other_tools(tmp_path: Path) -> None:
    (tmp_path / "2026").mkdir()
    write(tmp_path / "2026" / "a.csv", line())
    (tmp_path / "2026" / "b.csv.gz").write_bytes(gzip.compress(f"{HEADER}\n{line(2, sku='s2')}\n".encode()))
    (tmp_path / "2026" / "_SUCCESS").write_text("")
    (tmp_path / "2026" / "manifest.json").write_text("{}")
    for given in ([tmp_path], [str(tmp_path / "**" / "*.csv*")], [tmp_path, tmp_path / "2026" / "a.csv"]):
        with open_bill(given) as bill:
            assert total(bill) == (3.5, 2)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f"{HEADER}\r\n{line(sku='Größe')}\r\n".encode(encoding))
    with open_bill([path]) as bill:
        assert list(bill.engine.query("SELECT SkuId FROM focus")["SkuId"]) == ["Größe"]
        assert codes(bill) == ([] if encoding == "utf-8-sig" else ["encoding"])


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("$1,234.50", 1234.5),
        ("-$5", -5.0),
        ("1,234.5", 1234.5),
        (" 7 ", 7.0),
        ("1e3", 1000.0),
        ("-0.5", -0.5),
    ],
)
def test_numbers_as_people_save_them(cell: str, value: float, tmp_path: Path) -> None:
    with open_bill([write(tmp_path / "a.csv", line(f'"{cell}"'))]) as bill:
        assert total(bill) == (value, 1)


@pytest.mark.parametrize("cell", ["0,123", "1.234,50", "abc", "inf", "nan"])
def test_a_cost_that_is_no_number_stays_unknown_and_is_told(cell: str, tmp_path: Path) -> None:
    with open_bill([write(tmp_path / "a.csv", line(), line(f'"{cell}"'))]) as bill:
        assert total(bill) == (1.5, 2)
        (first,) = {finding.where for finding in bill.findings}
        assert first.endswith("a.csv:3")
        assert {finding.severity for finding in bill.findings} == {"error"}
        assert repr(cell) in bill.findings[0].message


def test_semicolons_and_month_first_dates(tmp_path: Path) -> None:
    text = f"{HEADER}\n{line()}\n".replace(",", ";").replace("2026-10-03T00:00:00Z", "10/3/26")
    path = tmp_path / "a.csv"
    path.write_text(text)
    with open_bill([path]) as bill:
        assert bill.months == (date(2026, 10, 1),)


def test_malformed_rows_are_counted_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(), "too,short", line() + ",too,long", line(2))
    with open_bill([path]) as bill:
        assert total(bill) == (3.5, 2)
        (finding,) = bill.findings
        assert (finding.code, finding.rows, finding.severity) == ("rejected_rows", 2, "error")
        assert "line 3, 4" in finding.message
        assert finding.cost is None


def test_credits_stay_negative(tmp_path: Path) -> None:
    with open_bill([write(tmp_path / "a.csv", line(10), line(-4).replace("Usage", "Credit"))]) as bill:
        assert total(bill) == (6.0, 2)


def test_tags_that_are_no_json_do_not_stop_a_query(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    duckdb.connect().sql(
        "SELECT TIMESTAMP '2026-10-01' AS ChargePeriodStart, 1.0::DOUBLE AS BilledCost, 'team=a' AS Tags, "
        "1.0::DOUBLE AS EffectiveCost, 'USD' AS BillingCurrency"
    ).write_parquet(str(path))
    with open_bill([path]) as bill:
        assert (
            bill.engine.query("SELECT json_extract_string(Tags, '$.team') AS t FROM focus")["t"].isna().all()
        )
        assert codes(bill) == ["lacking_columns", "bad_cells"]


def test_the_other_datasets(tmp_path: Path) -> None:
    make_company(1, seed=3, rows_per_month=500, version="1.4", out=tmp_path)
    with open_bill([tmp_path]) as bill:
        for dataset in ("ContractCommitment", "InvoiceDetail", "BillingPeriod"):
            assert bill.engine.query(f"SELECT COUNT(*) AS n FROM {dataset}")["n"][0] > 0
        assert {s.dataset for s in bill.sources} == set(focus_columns())


def test_without_them_they_are_empty(tmp_path: Path) -> None:
    with open_bill([write(tmp_path / "a.csv", line())]) as bill:
        assert bill.engine.query("SELECT COUNT(*) AS n FROM InvoiceDetail")["n"][0] == 0


@pytest.mark.parametrize("name", ["x' OR 1=1 --.csv", 'a"b.csv', "größe [1].csv"])
def test_names_of_files_are_no_sql(name: str, tmp_path: Path) -> None:
    with open_bill([write(tmp_path / name, line())]) as bill:
        assert list(bill.engine.query("SELECT x_source FROM focus")["x_source"]) == [str(tmp_path / name)]


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bills = tmp_path / "bills"
    bills.mkdir()
    open_bill([write(bills / "a.csv", line())]).close()
    with pytest.raises(InputError):
        open_bill([write(bills / "b.csv", "1", header="x")])
    assert [path.name for path in tmp_path.iterdir()] == ["bills"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("{H}\r\n{L}\n{L}\r\n{L}\n", 3),
        ("{H}\n{L}\r\n{L}\n", 2),
        ("{H}\r{L}\r{L}\r", 2),
        ("{H}\n{L}\n\n{L}\n\n", 2),
        ("\n\n{H}\n{L}\n", 1),
        ("sep=,\n{H}\n{L}\n", 1),
        ("{H},\n{L},\n", 1),
        ("{H}\n{L}\n{H}\n{L}", 2),
        ("{H},x_evil\"'; DROP VIEW focus; --\n{L},1\n", 1),
        ('{H},x_note\n{L},"two\nlines, and ""quotes"""\n{L},z\n', 2),
    ],
    ids=["ends", "ends after", "returns", "blank", "leading", "sep", "comma", "headers", "hostile", "quotes"],
)
def test_csv_as_tools_write_it(text: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.replace("{H}", HEADER).replace("{L}", line()).encode())
    with open_bill([path]) as bill:
        assert total(bill) == (1.5 * rows, rows)
        assert bill.findings == ()


def test_an_open_quote_loses_no_line_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'{HEADER}\n{line()}\n"{line()}\n{line()}\n{line()}\n')
    with open_bill([path]) as bill:
        (finding,) = bill.findings
        assert total(bill)[1] + finding.rows >= 4
        assert finding.where.endswith("a.csv:3")


def test_columns_that_figures_need_are_missed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "2026-10-03,5", header="ChargePeriodStart,BilledCost")
    with open_bill([path]) as bill:
        (stands_in, finding, _) = bill.findings
        assert (stands_in.code, finding.code) == ("billed_as_effective", "lacking_columns")
        assert "has no ListCost, ContractedCost, ChargeCategory" in finding.message


@pytest.mark.parametrize(
    "shape", ["{d}/10/2026", "{d}/10/2026 00:00", "{d}/10/26", "{d}.10.2026", "2026/10/{d}", "10/{d}/2026"]
)
def test_dates_of_every_country_are_in_their_month(shape: str, tmp_path: Path) -> None:
    days = [shape.format(d=f"{day:02d}") for day in range(1, 32)]
    if shape.endswith("26") and "2026" not in shape:
        days.append("31/10/2026")  # a year of four figures elsewhere in the file tells the way it is written
    rows = [line().replace("2026-10-03T00:00:00Z", day) for day in days]
    with open_bill([write(tmp_path / "bill.csv", *rows)]) as bill:
        assert codes(bill) == (["spelling"] if "{d}/10" in shape and "2026/" not in shape else [])
        assert bill.months == (date(2026, 10, 1),)
        assert bill.engine.query("SELECT COUNT(DISTINCT x_day) AS n FROM focus")["n"][0] == 31


def test_decimal_commas_are_read_where_nothing_else_is_possible(tmp_path: Path) -> None:
    rows = [line(cost).replace(",", ";").replace("~", ",") for cost in ("1~25", "-1.234~5", "2", "0~125")]
    path = write(tmp_path / "bill.csv", *rows, header=HEADER.replace(",", ";"))
    with open_bill([path]) as bill:
        assert total(bill) == (1.25 - 1234.5 + 2 + 0.125, 4)
        assert codes(bill) == ["spelling"]
    # a decimal point, or nothing but three figures behind the comma: told, never guessed
    for other in ("1.5", "1~250"):
        rows = [line(cost).replace(",", ";").replace("~", ",") for cost in ("0~125", other)]
        path = write(tmp_path / "bill.csv", *rows, header=HEADER.replace(",", ";"))
        with open_bill([path]) as bill:
            assert "bad_cells" in codes(bill)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_allowed_values_are_told_by_their_letters(form: str, tmp_path: Path) -> None:
    """Google's own view of FOCUS 1.0 writes `usage` and `committed`, which no query would find."""
    header = f"{HEADER},ChargeFrequency,PricingCategory,CommitmentDiscountStatus,ChargeClass"
    rows = [
        f"{line()},usage_based,committed,USED,".replace(",Usage,", ",usage,"),
        f"{line()},one time,standard,,correction".replace(",Usage,", ",TAX,"),
        f"{line()},,,,".replace(",Usage,", ",Gift,"),
    ]
    path = write(tmp_path / "bill.csv", *rows, header=header)
    if form == "parquet":
        path = tmp_path / "bill.parquet"
        typed = "CAST(ChargePeriodStart AS TIMESTAMP) AS ChargePeriodStart"
        duckdb.connect().sql(
            f"SELECT * REPLACE ({typed}) FROM read_csv('{tmp_path}/bill.csv')"
        ).write_parquet(str(path))
    with open_bill([path]) as bill:
        found = bill.engine.query(
            "SELECT ChargeCategory, ChargeFrequency, PricingCategory, CommitmentDiscountStatus, ChargeClass FROM focus "
            "ORDER BY ChargeCategory"
        ).fillna("")
        assert found.to_numpy().tolist() == [
            ["Gift", "", "", "", ""],
            ["Tax", "One-Time", "Standard", "", "Correction"],
            ["Usage", "Usage-Based", "Committed", "Used", ""],
        ]
        checks = {check.key: check for check in assess_quality(bill, date(2026, 10, 1)).checks}
        assert checks["no_category"].value == pytest.approx(1 / 3)


def test_a_file_of_which_no_row_can_be_read_says_why(tmp_path: Path) -> None:
    path = write(tmp_path / "bill.csv", "a;b", "c;d")
    with pytest.raises(InputError, match="2 malformed lines could not be read"):
        open_bill([path])


def test_parts_appended_twice_are_told(tmp_path: Path) -> None:
    rows = [line(day=f"2026-10-{day:02d}", sku=f"s{n}") for day in (1, 2, 3) for n in range(5)]
    with open_bill([write(tmp_path / "once.csv", *rows, line("0.01"), line("0.01"))]) as bill:
        assert codes(bill) == []  # two cheap charges alike are usual
    with open_bill([write(tmp_path / "twice.csv", *rows, HEADER, *rows)]) as bill:
        (finding,) = bill.findings
        assert (finding.code, finding.rows, finding.cost) == ("repeated_rows", 5, 7.5)
        assert total(bill) == (2 * 15 * 1.5, 30)  # a guess leaves nothing out
