"""What is refused or reported: one sentence with the place and the remedy, exit code 2, no traceback."""

from __future__ import annotations

import os
import random
from datetime import date
from pathlib import Path

import duckdb
import pytest

from planner.errors import InputError, OutputError
from planner.finops.read import open_bill
from tests.focus_company import make_company
from tests.planner.finops.read.test_open import HEADER, codes, line, total, write


def refusal(*paths: object, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        open_bill(list(paths), **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_no_such_file(tmp_path: Path) -> None:
    write(tmp_path / "october.csv", line())
    assert "no such file (did you mean 'october.csv'?)" in refusal(tmp_path / "octobre.csv")
    assert "no file has such a name" in refusal(str(tmp_path / "*.parquet"))


def test_folder_without_bills(tmp_path: Path) -> None:
    assert "has no bill in it" in refusal(tmp_path)


def test_a_folder_that_may_not_be_read_is_no_bill_without_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "october.csv", line())
    (tmp_path / "november").mkdir()
    scandir = os.scandir

    def closed(path: str) -> object:  # for root no folder is closed
        if str(path).endswith("november"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("os.scandir", closed)
    assert "november: cannot be read: Permission denied" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is empty"),
        (b"\n\n", "holds blank lines only"),
        (b"PAR1 and then nothing", "cannot be read as Parquet"),
        (b"\x1f\x8b\x08cut off", "cannot be read"),
        (b"PK\x03\x04\x00\x00binary", "is neither CSV, Parquet nor JSON"),
        (b'{"a": 1', "cannot be read as JSON"),
        (b"a,b,a\n1,2,3\n", "names 'a' twice"),
    ],
)
def test_damaged_files(data: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    message = refusal(path)
    assert text in message
    assert str(path) in message


def test_truncated_parquet(tmp_path: Path) -> None:
    make_company(1, seed=3, rows_per_month=500, version="1.2", out=tmp_path)
    path = next(tmp_path.glob("focus*.parquet"))
    path.write_bytes(path.read_bytes()[:-500])
    assert "cannot be read as Parquet" in refusal(path)


def test_flipped_bits_of_parquet_are_a_refusal_or_an_answer(tmp_path: Path) -> None:
    make_company(1, seed=3, rows_per_month=300, version="1.2", out=tmp_path)
    path = next(tmp_path.glob("focus*.parquet"))
    good, refused = path.read_bytes(), 0
    for seed in range(12):
        draw, data = random.Random(seed), bytearray(good)
        for _ in range(8):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
        try:
            open_bill([path]).close()
        except InputError as error:
            refused += 1
            assert path.name in str(error) or "a file of the bill" in str(error), (seed, error)
    assert refused > 2


def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "loop.csv"
    path.symlink_to(path)  # root may read anything, but not this
    assert "cannot be read" in refusal(tmp_path / "loop.csv") or "no such file" in refusal(path)


def test_wrong_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "1,2", header="ChargePeriodStat,BiledCost")
    message = refusal(path)
    assert "'ChargePeriodStart' (did you mean 'ChargePeriodStat'?)" in message
    assert "AWS Cost and Usage Report" in message


def test_costs_are_needed(tmp_path: Path) -> None:
    make_company(1, seed=3, rows_per_month=500, version="1.4", out=tmp_path)
    assert "add the cost export" in refusal(next(tmp_path.glob("invoice*")))


def test_a_full_temporary_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.finops.read.stage import Stager

    def full(self: Stager, *_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Stager, "_copy", full)
    with pytest.raises(OutputError, match=r"the temporary disk ran out: .*TMPDIR") as caught:
        open_bill([write(tmp_path / "a.csv", line())])
    assert caught.value.exit_code == 7


def test_currencies_are_never_mixed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2), line(5, currency="EUR"))
    message = refusal(path)
    assert "EUR (1 rows, 5.00 billed), USD (2 rows, 3.00 billed)" in message
    assert "--currency USD, which most rows are in" in message and "--rates FILE --in USD" in message
    with open_bill([path], currency="USD") as bill:
        assert total(bill) == (3.0, 2)
        assert codes(bill) == ["other_currency"]
    assert "no row is billed in it" in refusal(path, currency="GBP")


def test_no_currency_at_all(tmp_path: Path) -> None:
    with open_bill([write(tmp_path / "a.csv", line(currency=""))]) as bill:
        assert (bill.currency, codes(bill)) == ("XXX", ["no_currency"])


def test_amounts_without_a_currency_are_not_added_to_those_with_one(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2), line(5, currency=""))
    with open_bill([path]) as bill:
        assert (total(bill), bill.currency, codes(bill)) == ((3.0, 2), "USD", ["no_currency"])
        (found,) = bill.findings
        assert (found.severity, found.rows, found.cost) == ("error", 1, 5.0)
        assert "is left out" in found.message and "--currency XXX" in found.message
    with open_bill([path], currency="XXX") as bill:
        assert (total(bill), bill.currency, codes(bill)) == ((5.0, 1), "XXX", ["other_currency"])


def test_the_user_may_say_what_a_bill_without_a_currency_is_in(tmp_path: Path) -> None:
    with open_bill([write(tmp_path / "a.csv", line(4, currency=""))], currency="EUR") as bill:
        assert (total(bill), bill.currency, codes(bill)) == ((4.0, 1), "EUR", ["no_currency"])
        assert "are taken as EUR, as --currency says" in bill.findings[0].message


def test_a_month_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(), line(day="2026-09-30"))
    assert "--month 2026-08: the bill has no charges in it; it has 2026-09, 2026-10" in refusal(
        path, month=date(2026, 8, 1)
    )
    open_bill([path], month=date(2026, 9, 15)).close()


def test_a_bill_without_a_readable_day(tmp_path: Path) -> None:
    """It was said to have no month at all, or no charge with a ChargePeriodStart."""
    path = write(tmp_path / "a.csv", line(day="15th of Oct"), line(day="16th of Oct"))
    for month in (None, date(2026, 10, 1)):
        message = refusal(path, month=month)
        assert (
            message.startswith("no day of the bill can be read: ")
            and "ChargePeriodEnd: must be a moment" in message
        )
        assert "a.csv:2" in message


def test_rows_of_no_month(tmp_path: Path) -> None:
    with open_bill([write(tmp_path / "a.csv", line(), line(day="2026-13-45"))]) as bill:
        assert total(bill) == (3.0, 2)
        assert {"no_month", "bad_cells"} == set(codes(bill))


def test_the_same_file_twice_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", line())
    write(tmp_path / "copy of a.csv", line())
    with open_bill([tmp_path]) as bill:
        assert total(bill) == (1.5, 1)
        assert codes(bill) == ["duplicate_file"]


def test_charges_in_two_exports_are_told(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", line(1, sku="s1"), line(2, sku="s2"), line(4, sku="s3"))
    write(tmp_path / "b.csv", line(2, sku="s2"), line(8, sku="s4"), line(9, sku="s5"))
    with open_bill([tmp_path]) as bill:
        assert total(bill)[1] == 6  # nothing is dropped on a guess
        (finding,) = bill.findings
        assert (finding.code, finding.rows, finding.cost) == ("repeated_charges", 1, 2.0)
        assert "give each charge once" in finding.message


def test_parts_of_one_export_do_not_repeat(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", *[line(n, sku=f"s{n}") for n in range(5)])
    write(tmp_path / "b.csv", *[line(n, sku=f"s{n}") for n in range(5, 9)])
    with open_bill([tmp_path]) as bill:
        assert codes(bill) == []


def test_the_latest_delivery_wins_where_the_folder_says_so(tmp_path: Path) -> None:
    for moment, cost in (("20261101T040000Z", 1), ("20261105T040000Z", 2)):
        (tmp_path / moment).mkdir()
        write(tmp_path / moment / "part-0.csv", line(cost), line(cost, day="2026-10-04"))
    with open_bill([tmp_path]) as bill:
        assert total(bill) == (4.0, 2)
        (finding,) = bill.findings
        assert (finding.code, finding.rows, finding.severity) == ("superseded", 2, "info")


def test_header_only(tmp_path: Path) -> None:
    assert "no charges" in refusal(write(tmp_path / "a.csv", header=HEADER))


def test_a_column_whose_name_is_no_text_is_damage(tmp_path: Path) -> None:
    plain, path = write(tmp_path / "bill.csv", line()), tmp_path / "bill.parquet"
    with duckdb.connect() as own:  # the connection that all share may be in use
        own.execute(f"COPY (FROM READ_CSV('{plain}')) TO '{path}'").fetchall()
    path.write_bytes(path.read_bytes().replace(b"ServiceName", b"Service\xffame"))
    message = refusal(path)
    assert f"{path}: cannot be read as Parquet: the name of a column is not UTF-8" in message


@pytest.mark.parametrize("day", ["infinity", "12026-10-01"])
def test_a_typed_moment_that_is_no_day(day: str, tmp_path: Path) -> None:
    path = tmp_path / "bill.parquet"
    sql = f"SELECT TIMESTAMP '{day}' AS ChargePeriodStart, 5.0 AS BilledCost, 'Usage' AS ChargeCategory"
    with duckdb.connect() as own:
        own.sql(f"{sql}, 'USD' AS BillingCurrency").write_parquet(str(path))
    assert f"bill.parquet: ChargePeriodStart: {day} is no day of a bill" in refusal(path)


@pytest.mark.parametrize("day", ["infinity", " epoch", "-Infinity"])
def test_a_word_is_no_day(day: str, tmp_path: Path) -> None:
    """It ended in a traceback, or was 1 January 1970."""
    with open_bill([write(tmp_path / "a.csv", line(), line(day=day))]) as bill:
        assert total(bill) == (3.0, 2)
        assert {"bad_cells", "no_month"} <= set(codes(bill))
