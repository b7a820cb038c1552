"""Accepted actions: kept in a file, and measured in later months against what the use would have cost."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.finops.ledger import open_book
from planner.finops.ledger.measure import action_id, baseline, saved
from planner.finops.review.inputs import Beside
from planner.finops.review.model import Review
from tests.conftest import CliResult
from tests.draws import draws
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import (
    charge,
    each_day,
    review_of,
    rows_of,
    section,
    sections_only,
    write_bill,
)

pytestmark = pytest.mark.usefixtures("one_bill")

SEPTEMBER, OCTOBER, LAST = date(2026, 9, 1), date(2026, 10, 1), date(2026, 10, 31)
SPOT = action_id("switch_option", "AWS", "EC2", "gpu")
SHRINK = action_id("commit_less", "AWS", "", "c1")
DELETE = action_id("delete_idle", "AWS", "EBS", "vol-1")


def rows() -> Iterator[dict[str, str]]:
    """September: 10 hours a day at 10 and 1 hour of spot at 4; October: 4 on demand (now 8) and 6 of spot at 4.

    A commitment has 20 unused a day, then 5; an idle disk costs 3 a day and is gone in October.
    """
    for first, last, plain, spot, unused in (
        (SEPTEMBER, date(2026, 9, 30), (100, 10), (4, 1), 20), (OCTOBER, LAST, (32, 4), (24, 6), 5)
    ):  # fmt: skip
        yield from each_day(first, last, plain[0], PricingQuantity=plain[1])
        yield from each_day(first, last, spot[0], PricingQuantity=spot[1], PricingCategory="Dynamic")
        yield from each_day(
            first, last, 10, CommitmentDiscountId="c1", CommitmentDiscountStatus="Used", SkuId="c"
        )
        yield from each_day(
            first, last, unused, CommitmentDiscountId="c1", CommitmentDiscountStatus="Unused", SkuId="c"
        )
    yield from each_day(SEPTEMBER, date(2026, 9, 30), 3, ServiceName="EBS", ServiceCategory="Storage", SkuId="disk",
                        ResourceId="vol-1", ConsumedQuantity="0")  # fmt: skip


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bill(tmp_path_factory.mktemp("bill") / "bill.csv", rows())


def review(bill: Path, month: date, ledger: Path, *wanted: str) -> Review:
    book = open_book(ledger, wanted)
    made = review_of(bill, only=("ledger",), month=month, beside=Beside(ledger=book))
    if wanted:
        book.save()
    return made


def test_savings_are_measured_a_month_later(bill: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    first = review(bill, SEPTEMBER, path, SPOT, SHRINK, DELETE)
    assert {row["id"] for row in rows_of(first, "ledger", "ledger")} == {SPOT, SHRINK, DELETE}
    assert figures(first)["ledger_realised_money"].status == "withheld"
    assert path.stat().st_mode & 0o777 == 0o600
    later = {row["id"]: row for row in rows_of(review(bill, OCTOBER, path), "ledger", "ledger")}
    # 310 hours at 10/11 x 8 + 1/11 x 4, the mix of September at the prices of October, less 56 a day
    assert later[SPOT]["realised"] == pytest.approx(310 * (80 + 4) / 11 - 31 * 56)
    assert later[SHRINK]["realised"] == pytest.approx(31 * 15)
    assert later[DELETE]["realised"] == pytest.approx(31 * 3)
    assert all(row["low"] <= row["realised"] <= row["high"] for row in later.values())
    total = figures(review(bill, OCTOBER, path))["ledger_realised_money"]
    assert total.value == pytest.approx(sum(row["realised"] for row in later.values()))


def test_a_bill_without_the_accepted_month_measures_the_same(bill: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    review(bill, SEPTEMBER, path, SPOT)
    alone = write_bill(tmp_path / "o.csv", [row for row in rows() if row["ChargePeriodStart"] >= "2026-10"])
    both, one = (rows_of(review(file, OCTOBER, path), "ledger", "ledger")[0] for file in (bill, alone))
    assert one["realised"] == pytest.approx(both["realised"])


def test_actions_have_the_ids_by_which_they_are_accepted(bill: Path) -> None:
    """A ledger that is not there yet named none, so that the first action could only be accepted by guessing."""
    ids = [row["id"] for row in rows_of(review_of(bill, month=SEPTEMBER), "actions", "actions")]
    assert SPOT in ids and len(set(ids)) == len(ids)


def test_what_is_refused(bill: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    with pytest.raises(InputError, match="no such file; accept an action"):
        open_book(path)
    with pytest.raises(InputError, match=f"did you mean.*{SPOT}"):
        review(bill, SEPTEMBER, path, SPOT[:-1] + "x")
    review(bill, SEPTEMBER, path, SPOT)
    with pytest.raises(InputError, match="was accepted in 2026-09 already"):
        review(bill, SEPTEMBER, path, SPOT)
    other = json.loads(path.read_text()) | {"currency": "EUR"}
    (tmp_path / "eur.json").write_text(json.dumps(other))
    with pytest.raises(InputError, match="is in EUR, the bill in USD"):
        review(bill, SEPTEMBER, tmp_path / "eur.json")


HEAD = '{"kind":"ledger","version":1,"currency":"USD","entries":'
NO_LEDGERS = ["{", "[]", '{"kind":"plan"}', HEAD.replace(":1,", ":2,") + "[]}", HEAD + '[{"id":1}]}']


@pytest.mark.parametrize("text", NO_LEDGERS)
def test_files_that_are_no_ledger(text: str, tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"l\.json: is not a ledger"):
        open_book(path)


def test_a_file_that_changed_meanwhile_is_kept(bill: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    book = open_book(path, [SPOT])
    review_of(bill, only=("ledger",), month=SEPTEMBER, beside=Beside(ledger=book))
    path.write_text("somebody else's")
    with pytest.raises(InputError, match="has changed since it was read"):
        book.save()
    assert path.read_text() == "somebody else's"


def frame(*parts: tuple[str, float, float]) -> Any:
    return pd.DataFrame(
        [{"x_day": n % 3, "service": "s", "region_id": "r", "pricing_category": p, "quantity": q,
          "effective_cost": q * price, "contracted_cost": q * 10} for n, (p, q, price) in enumerate(parts)]
    )  # fmt: skip


PARTS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.floats(0.1, 1e4), st.floats(0.01, 100)), min_size=1, max_size=6
)


@given(PARTS, st.sampled_from(["sku", "resource", "commitment", "service"]), st.floats(0.1, 10))
@draws(60)
def test_nothing_changed_saves_nothing(
    parts: list[tuple[str, float, float]], scope: str, factor: float
) -> None:
    """The same month again saves 0, and twice the use at the same prices saves 0 where use is counted."""
    fields = {"id": "x", "kind": "k", "what": "", "owner": "", "accepted": "2026-09", "expected": None, "basis": "",
              "provider": "p", "scope": scope, "thing": "t"}  # fmt: skip
    was = frame(*parts)
    entry = baseline(fields, was, 30)
    whole = float(was["effective_cost"].sum())
    assert saved(entry, was, "2026-10", 30).amount == pytest.approx(0, abs=1e-9 * whole + 1e-9)
    if scope in ("sku", "service"):
        grown = frame(*((p, q * factor, price) for p, q, price in parts))
        assert saved(entry, grown, "2026-10", 30).amount == pytest.approx(0, abs=1e-9 * whole * factor + 1e-9)


@pytest.fixture
def _the_ledger_alone() -> Iterator[None]:
    """Reviews of a command have what is accepted and the ledger, and no other section."""
    with sections_only("actions", "ledger"):
        yield


@pytest.mark.usefixtures("_the_ledger_alone")
def test_from_the_command_line(bill: Path, tmp_path: Path, run_cli: Callable[..., CliResult]) -> None:
    path = str(tmp_path / "l.json")
    asked = ["review", "--focus", str(bill), "--month", "2026-09", "--no-forecast"]
    done = run_cli(*asked, "--accept", SPOT)
    assert (done.code, done.stdout) == (2, "") and "--ledger FILE" in done.stderr
    done = run_cli(*asked, "--ledger", path, "--accept", SPOT)
    assert done.code == 0 and "1 is accepted now" in done.stdout and len(open_book(Path(path)).entries) == 1
    before = Path(path).read_bytes()
    done = run_cli(*asked[:3], "--month", "2026-10", "--no-forecast", "--ledger", path, "-o", "json")
    assert done.code == 0 and Path(path).read_bytes() == before
    assert any(one["key"] == "ledger" for one in json.loads(done.stdout)["sections"])


@pytest.mark.usefixtures("_the_ledger_alone")
def test_what_cannot_be_written_is_not_accepted(
    bill: Path, tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    """The ledger was written before the answer's file, and the same command again was refused."""
    path, out = tmp_path / "l.json", tmp_path / "answers" / "review.html"
    asked = ["review", "--focus", str(bill), "--month", "2026-09", "--no-forecast", "--ledger", str(path)]
    asked += ["--accept", SPOT, "-o", "html", "--out", str(out)]
    out.parent.write_text("no folder")
    assert run_cli(*asked).code == 2 and not path.exists()
    out.parent.unlink()
    out.parent.mkdir()
    assert run_cli(*asked).code == 0 and out.exists() and len(open_book(path).entries) == 1


@pytest.mark.usefixtures("_the_ledger_alone")
def test_what_nobody_saw_is_not_accepted(
    bill: Path, tmp_path: Path, run_cli: Callable[..., CliResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger was written before the answer was shown: `| head` accepted what its reader had not seen."""
    path = tmp_path / "l.json"
    asked = ["review", "--focus", str(bill), "--month", "2026-09", "--no-forecast", "--ledger", str(path)]
    asked += ["--accept", SPOT]
    with monkeypatch.context() as gone:
        gone.setattr("planner.commands.review.show_answer", lambda *_: _gone())
        done = run_cli(*asked)
    assert done.code == 141 and not path.exists()
    assert "nothing was accepted: the answer could not be written to its end" in done.stderr
    with monkeypatch.context() as full:
        full.setattr("planner.files._replace", _full)
        done = run_cli(*asked, "--out", str(tmp_path / "review.txt"))
    assert done.code == 7 and not path.exists()
    assert "nothing was accepted: the answer could not be written to its end" in done.stderr
    with monkeypatch.context() as full:
        full.setattr("planner.files._replace", _full)
        done = run_cli(*asked)
    assert done.code == 7 and not path.exists()
    assert "nothing was accepted, though the answer says so" in done.stderr and "No space left" in done.stderr
    assert run_cli(*asked).code == 0 and len(open_book(path).entries) == 1


def _gone() -> None:
    raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def _full(path: Path, *_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


def test_a_ledger_without_actions_says_so(bill: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    path.write_text('{"kind":"ledger","version":1,"currency":"USD","entries":[]}')
    assert section(review(bill, OCTOBER, path), "ledger").sentences == ("The ledger is empty.",)


def test_a_month_of_corrections_alone_is_not_measured(bill: Path, tmp_path: Path) -> None:
    """Corrections of October in November's bill: a whole month of the deleted disk counted as saved in October too."""
    path = tmp_path / "ledger.json"
    review(bill, SEPTEMBER, path, DELETE)
    early = {"ServiceName": "EBS", "SkuId": "disk", "ResourceId": "vol-1", "ChargeClass": "Correction"}
    rows = [charge(date(2026, 10, 9), -3, **early), *each_day(date(2026, 11, 16), date(2026, 11, 30), 100)]
    later = review(write_bill(tmp_path / "november.csv", rows), date(2026, 11, 1), path)
    (row,) = rows_of(later, "ledger", "ledger")
    assert (row["realised"], row["to_date"]) == (
        pytest.approx(15 * 3),
        pytest.approx(15 * 3),
    )  # of fifteen days


def test_refunds_and_corrections_are_no_saving(tmp_path: Path) -> None:
    """A refund of 200 in October made on-demand hours cheaper, and with them what spot had saved."""
    saved_by: list[float] = []
    for more in ([], [{"PricingQuantity": 0}], [{"ChargeClass": "Correction", "PricingQuantity": -9}]):
        path = tmp_path / f"ledger-{len(saved_by)}.json"
        late = {"BillingPeriodStart": "2026-10-01T00:00:00Z"}
        refunds = [charge(date(2026, 10, 9), -200, **late, **one) for one in more]
        bill = write_bill(path.with_suffix(".csv"), [*rows(), *refunds])
        review(bill, SEPTEMBER, path, SPOT)
        (row,) = rows_of(review(bill, OCTOBER, path), "ledger", "ledger")
        saved_by.append(row["realised"])
    assert saved_by == pytest.approx([saved_by[0]] * 3)
    assert saved_by[0] > 0


def test_a_smaller_commitment_is_not_saved_by_its_service_again(tmp_path: Path) -> None:
    """20 a day unused in September and none in October, all else alike: 620, which both actions took for theirs."""
    rows = []
    for first, last, unused in ((SEPTEMBER, date(2026, 9, 30), 20), (OCTOBER, LAST, 0)):
        rows += each_day(first, last, 100)
        used = {"CommitmentDiscountId": "c1", "PricingCategory": "Committed", "SkuId": "c"}
        rows += [row | {"ContractedCost": "50", "ListCost": "50"}
                 for row in each_day(first, last, 30, CommitmentDiscountStatus="Used", **used)]  # fmt: skip
        if unused:
            rows += [row | {"ContractedCost": "0", "ListCost": "0"}
                     for row in each_day(first, last, unused, CommitmentDiscountStatus="Unused", **used)]  # fmt: skip
    path, more = tmp_path / "ledger.json", action_id("commit_more", "AWS", "EC2", "Commit more: EC2 of AWS")
    bill = write_bill(tmp_path / "bill.csv", rows)
    review(bill, SEPTEMBER, path, more, SHRINK)
    made = review(bill, OCTOBER, path)
    later = {row["id"]: row for row in rows_of(made, "ledger", "ledger")}
    assert later[SHRINK]["realised"] == pytest.approx(31 * 20)
    assert later[more]["realised"] == pytest.approx(0, abs=1e-6)
    assert later[more]["remark"] == f"less what {SHRINK} saved, which counts there"
    assert figures(made)["ledger_realised_money"].value == pytest.approx(31 * 20)


def test_the_ledger_names_the_owner_that_the_actions_name(tmp_path: Path) -> None:
    """EC2 is mostly of ml; the machine that costs less in the other region is of data."""
    own = {"SkuId": "small", "Tags": '{"team":"data","env":"prod"}', "ResourceId": "i-2"}
    rows = each_day(SEPTEMBER, LAST, 1000)
    rows += each_day(SEPTEMBER, LAST, 100, **own)
    rows += each_day(SEPTEMBER, LAST, 20, RegionId="west", PricingQuantity=4, **own)
    path = tmp_path / "ledger.json"
    bill = write_bill(tmp_path / "bill.csv", rows)
    move = action_id("move_region", "AWS", "EC2", "small")
    beside = Beside(ledger=open_book(path, (move,)))
    made = review_of(bill, month=SEPTEMBER, beside=beside, only=("actions", "ledger"))
    (asked,) = (row for row in rows_of(made, "actions", "actions") if row["id"] == move)
    (kept,) = rows_of(made, "ledger", "ledger")
    assert (asked["owner"], kept["owner"]) == ("data", "data")


@pytest.mark.parametrize("last", [0, 14], ids=["before", "within the month"])
def test_a_commitment_that_is_gone_may_have_been_over(last: int, tmp_path: Path) -> None:
    """The end of its term was the saving of the action to shrink it, without a word."""
    path = tmp_path / "ledger.json"
    used = {"CommitmentDiscountId": "c1", "SkuId": "c"}
    rows = each_day(SEPTEMBER, LAST, 100)
    for end, status, cost in (
        (date(2026, 9, 30), "Unused", 20),
        (date(2026, 9, 30) + timedelta(last), "Used", 30),
    ):
        rows += each_day(SEPTEMBER, end, cost, CommitmentDiscountStatus=status, **used)
    bill = write_bill(tmp_path / "bill.csv", rows)
    review(bill, SEPTEMBER, path, SHRINK)
    (row,) = rows_of(review(bill, OCTOBER, path), "ledger", "ledger")
    assert row["realised"] == pytest.approx(31 * 20)
    assert row["remark"] == "it has no charge at the month's end: if its term was over, that saved nothing"
