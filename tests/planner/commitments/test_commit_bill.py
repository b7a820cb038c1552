"""`planner commit --from-focus`: purchases for what goes on, none for what ended, nothing bought twice."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.commitments.bill import read_use
from planner.commitments.stated_ends import parse_ends, with_stated
from planner.errors import InputError
from tests.conftest import CliResult

Run = Callable[..., CliResult]
FIRST, DAYS = date(2025, 10, 1), 396
REGION = "polandcentral"
FLAT, ENDED, COVERED = "Standard_NC24ads_A100_v4", "Standard_NV36ads_A10_v5", "Standard_NC16as_T4_v3"
HEADER = (
    "BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "BillingCurrency", "ChargeCategory",
    "ChargePeriodStart", "ChargePeriodEnd", "PricingCategory", "PricingQuantity", "PricingUnit", "ServiceProviderName",
    "ServiceCategory", "RegionId", "SkuPriceDetails", "CommitmentDiscountId", "CommitmentDiscountStatus",
    "CommitmentDiscountType", "ChargeClass", "SkuId", "CapacityReservationId", "CapacityReservationStatus",
)  # fmt: skip


def charge(day: date, kind: str, machines: float, **more: str) -> dict[str, str]:
    """Use of some machines for a day."""
    cost = f"{machines * 24 * 4:.2f}"
    return {
        **dict.fromkeys(HEADER[:4], cost), "BillingCurrency": "USD", "ChargeCategory": "Usage",
        "ChargePeriodStart": f"{day}T00:00:00Z", "ChargePeriodEnd": f"{day + timedelta(1)}T00:00:00Z",
        "PricingCategory": "Standard", "PricingQuantity": f"{machines * 24}", "PricingUnit": "Hours",
        "ServiceProviderName": "Microsoft", "ServiceCategory": "Compute", "RegionId": REGION,
        "SkuPriceDetails": json.dumps({"InstanceType": kind}), **more,
    }  # fmt: skip


def write(path: Path, rows: Iterable[Mapping[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADER, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(autouse=True)
def _each_question_once(asked_once: Callable[[str], None]) -> None:
    """What is asked in other formats or for a proof has the same answer."""
    asked_once("planner.commitments.from_bill.question_from_bill")
    asked_once("planner.commitments.advise.advise")


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty machines all the time, eight that ended ten days ago, six under a reservation."""
    owned = {
        "PricingCategory": "Committed", "CommitmentDiscountId": "res-1", "CommitmentDiscountStatus": "Used",
        "CommitmentDiscountType": "Reservation",
    }  # fmt: skip
    rows: list[Mapping[str, str]] = []
    for number in range(DAYS):
        day = FIRST + timedelta(number)
        rows.append(charge(day, FLAT, 20))
        rows.append(charge(day, COVERED, 6, **owned))
        rows.append(charge(day, FLAT, 3, PricingCategory="Dynamic"))
        if number < DAYS - 10:
            rows.append(charge(day, ENDED, 8))
    return write(tmp_path_factory.mktemp("bill") / "bill.csv", rows)


def test_what_goes_on_is_bought_and_nothing_else(bill: Path, run_cli: Run) -> None:
    found = run_cli("commit", "--from-focus", bill, "-o", "json", "--no-regret")
    assert found.code == 0, found.stderr
    answer: dict[str, Any] = json.loads(found.stdout)
    flat = f"{FLAT} {REGION}"
    assert [line["serves"] for line in answer["lines"]] == [
        [flat]
    ]  # not what ended, not what is covered already
    assert 5 <= answer["lines"][0]["units"] <= 22
    assert answer["lines"][0]["option"] == "reserved_1y"
    assert answer["start"] == "2026-11-01"
    assert answer["plan"]["savings_usd"] > 0
    assert "demand: bill.csv, 2025-10-01 to 2026-10-31, by the day, 3 kinds of machines" in answer["notes"]
    assert any("res-1" in note and "owned all year" in note for note in answer["notes"])
    assert answer["files"][0]["file"].endswith("bill.csv")
    assert answer["name"] == "bill.csv, 2025-10-01 to 2026-10-31"


def test_nothing_is_proposed_that_costs_more_than_it_saves_in_the_mean(tmp_path: Path, run_cli: Run) -> None:
    """One of two pools ended, so may the other: a reservation would only lower the cost of the worst scenarios."""
    days = [FIRST + timedelta(number) for number in range(92)]
    aws = {"ServiceProviderName": "AWS", "RegionId": "us-east-1"}
    rows = [charge(day, "p4d.24xlarge", 2, **aws) for day in days]
    ended = [charge(day, "g5.12xlarge", 2, **aws) for day in days[:36]]
    path = write(tmp_path / "bill.csv", rows + ended)
    found = run_cli("commit", "--from-focus", path, "-o", "json")
    assert found.code == 0, found.stderr
    answer: dict[str, Any] = json.loads(found.stdout)
    assert answer["plan"]["expected_usd"] <= answer["nothing"]["expected_usd"]
    assert answer["risk_weight"] == 0.0
    said = " ".join(answer["notes"])
    assert "costs more than it saves in the mean of all: not proposed" in said
    assert "demand of the scenarios: " in said and "% of the last 28 days' in the mean of the year" in said
    proof = tmp_path / "proof.json"
    assert run_cli("commit", "--from-focus", path, "--no-regret", "--certificate", proof).code == 0
    assert run_cli("verify", proof).code == 0
    saved = tmp_path / "answer.json"
    saved.write_text(found.stdout)
    for more in ((), ("--workload", path)):
        refused = run_cli("verify", saved, *more)
        assert (refused.code, "with --bill BILL" in refused.stderr) == (2, True)
    assert run_cli("verify", saved, "--bill", path).code == 0


def test_a_price_on_losses_is_asked_for(bill: Path, run_cli: Run) -> None:
    """These purchases save 30 % and lose in an eighth of the scenarios: at price 1.5 that is still worth it."""
    asked = ("commit", "--from-focus", bill, "--no-regret")
    free, ruled = (
        json.loads(run_cli(*asked, "-o", "json", *more).stdout) for more in ((), ("--avoid-loss",))
    )
    assert (free["loss"]["price"], ruled["loss"]["price"]) == (0.0, 1.5)
    assert ruled["loss"]["plain_chance_ratio"] == pytest.approx(free["loss"]["chance_ratio"], abs=0.08)
    assert ruled["loss"]["plain_chance_ratio"] > 0  # of other scenarios, 200 in place of 60
    assert (
        ruled["plan"]["savings_usd"] > 1.5 * ruled["loss"]["chance_ratio"] * ruled["nothing"]["expected_usd"]
    )
    assert "buying less would not pay" in run_cli(*asked, "--avoid-loss").unwrapped


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([charge(FIRST, FLAT, 2, PricingUnit="GB")], "no usage row counts hours of a machine"),
        ([charge(FIRST, FLAT, 2)], "has 1 whole days of machines in use; 14 are needed"),
        (
            [charge(FIRST + timedelta(n), "Standard_None", 2) for n in range(20)],
            "no machine of the bill has a one-year commitment",
        ),
    ],
)
def test_bills_without_usable_rows_are_named(
    tmp_path: Path, run_cli: Run, rows: list[Mapping[str, str]], message: str
) -> None:
    found = run_cli("commit", "--from-focus", write(tmp_path / "poor.csv", rows))
    assert (found.code, found.stdout) == (2, "")
    assert message in " ".join(found.stderr.split())
    assert "poor.csv" in found.stderr


def test_a_commitment_counts_over_the_days_that_it_was_there(tmp_path: Path) -> None:
    """Of a bill of twenty days, one commitment began five days ago half used, and one ended six days ago."""
    rows: list[Mapping[str, str]] = []
    for number in range(20):
        day = FIRST + timedelta(number)
        rows.append(charge(day, FLAT, 5))
        if number >= 15:
            part = {"CommitmentDiscountId": "new", "CommitmentDiscountType": "Savings Plan"}
            rows.append(charge(day, FLAT, 2, CommitmentDiscountStatus="Used", **part))
            rows.append(charge(day, "", 2, CommitmentDiscountStatus="Unused", RegionId="", **part))
        if number < 14:
            rows.append(charge(day, FLAT, 1, CommitmentDiscountId="old", CommitmentDiscountStatus="Used"))
    use = read_use([str(write(tmp_path / "bill.csv", rows))])
    assert [(own.option, own.key, own.instances) for own in use.owned] == [
        ("savings_plan_1y", ("azure", REGION, FLAT), 4.0)
    ]
    assert "commitment old has no charge after 2025-10-14: it counts as ended" in use.notes
    assert use.use.shape == (20, 1)
    assert use.use[:, 0].tolist() == [6.0] * 14 + [5.0] + [7.0] * 5


def test_what_stands_unused_of_a_capacity_reservation_is_no_demand(tmp_path: Path) -> None:
    """A review says to shrink it, and the plan of the same bill committed to it for a year."""
    reserved = {"CapacityReservationId": "cr-1", "CapacityReservationStatus": "Unused"}
    used = reserved | {"CapacityReservationStatus": "Used"}
    days = [FIRST + timedelta(number) for number in range(20)]
    rows = [
        charge(day, FLAT, machines, **own)
        for day in days
        for machines, own in ((5, {}), (2, used), (3, reserved))
    ]
    use = read_use([str(write(tmp_path / "bill.csv", rows))])
    assert set(use.use[:, 0].tolist()) == {7.0}


def test_a_bill_in_columns_of_its_own(tmp_path: Path, run_cli: Run) -> None:
    """`review` read it by its mapping file, `commit` refused it."""
    path, columns = (
        write(tmp_path / "bill.csv", [charge(FIRST + timedelta(n), FLAT, 5) for n in range(20)]),
        tmp_path / "columns.csv",
    )
    path.write_text(
        path.read_text()
        .replace("BilledCost", "usd", 1)
        .replace("PricingQuantity", "amount", 1)
        .replace("ChargeCategory", "kind", 1)
    )
    assert run_cli("commit", "--from-focus", str(path)).code == 2
    own = "--map", "usd=BilledCost", "--map", "amount=PricingQuantity", "--map", "'Usage'=ChargeCategory"
    made = run_cli(
        "commit", "--from-focus", str(path), *own, "--map-file", str(columns), "--no-regret", "-o", "json"
    )
    answer = tmp_path / "answer.json"
    answer.write_text(made.stdout)
    assert json.loads(made.stdout)["bill"]["mapping"] == list(own[1::2])
    again = run_cli(
        "commit", "--from-focus", str(path), "--map-file", str(columns), "--no-regret", "-o", "json"
    )
    assert json.loads(again.stdout)["lines"] == json.loads(made.stdout)["lines"] != []
    checked = run_cli("verify", str(answer), "--bill", str(path))
    assert checked.code == 0, checked.stderr
    focus = {"BilledCost": "usd", "PricingQuantity": "amount", "ChargeCategory": "'Usage'"}
    asked = planner.commit(bill=path, mapping=focus, regret=False)
    assert asked.to_dict()["lines"] == json.loads(made.stdout)["lines"]
    with pytest.raises(InputError, match="mapping belong to a bill"):
        planner.commit("examples/commit.yaml", mapping=focus)
    refused = run_cli("commit", "examples/commit.yaml", "--map", "usd=BilledCost")
    assert refused.code == 2 and "--map and --map-file are for --from-focus" in refused.stderr


def test_a_charge_by_the_hour_of_no_type_is_no_machine(tmp_path: Path, run_cli: Run) -> None:
    """The fee of a Kubernetes cluster was among the machines left out: "sku-eks in aws/us-east-1"."""
    days = [FIRST + timedelta(number) for number in range(20)]
    fee = {"SkuPriceDetails": "", "SkuId": "sku-eks"}
    rows = [
        charge(day, kind, 2, **own) for day in days for kind, own in ((FLAT, {}), ("cpu-16", {}), ("", fee))
    ]
    said = run_cli(
        "commit", "--from-focus", str(write(tmp_path / "bill.csv", rows)), "--no-regret", "-o", "json"
    ).stdout
    assert "sku-eks" not in said and f"cpu-16 in azure/{REGION} (50 % of the machines' cost)" in said
    alone = [row for row in rows if "SkuId" in row]
    refused = run_cli("commit", "--from-focus", str(write(tmp_path / "fees.csv", alone)))
    assert refused.code == 2 and "sku-eks" in refused.stderr


def test_a_correction_of_an_earlier_time_is_no_day_without_machines(tmp_path: Path) -> None:
    """Six months of nothing were history: the scenarios had machines that come and go."""
    rows = [charge(FIRST + timedelta(number), FLAT, 5) for number in range(20)]
    early = charge(FIRST - timedelta(180), FLAT, -2, ChargeClass="Correction")
    plain = read_use([str(write(tmp_path / "plain.csv", rows))])
    made = read_use([str(write(tmp_path / "bill.csv", [early, *rows]))])
    assert made.first == plain.first == FIRST and made.use.tolist() == plain.use.tolist()


@pytest.mark.parametrize(
    ("paid", "currency", "prices"), [(0.6, "USD", {"reserved_1y": 2.4}), (1.0, "USD", {}), (0.6, "EUR", {})]
)
def test_machines_that_no_catalog_has_take_the_prices_of_their_commitments(
    tmp_path: Path, run_cli: Run, paid: float, currency: str, prices: dict[str, float]
) -> None:
    """A machine at 4 an hour whose reservation costs 60 % of that: 2.40; none where nothing is saved, or not in USD."""
    owned = {
        "CommitmentDiscountId": "r",
        "CommitmentDiscountStatus": "Used",
        "CommitmentDiscountType": "Reservation",
    }
    rows: list[Mapping[str, str]] = []
    for number in range(DAYS):
        day = FIRST + timedelta(number)
        rows.append(charge(day, "own-8", 10, BillingCurrency=currency))
        cost = f"{2 * 24 * 4 * paid:.2f}"
        rows.append(charge(day, "own-8", 2, **owned, EffectiveCost=cost, BillingCurrency=currency))
    path = write(tmp_path / "bill.csv", rows)
    found = {key: dict(of.committed) for key, of in read_use([str(path)]).prices.items()}
    assert found == ({("azure", REGION, "own-8"): pytest.approx(prices)} if prices else {})
    answer = run_cli("commit", "--from-focus", path, "-o", "json", "--no-regret")
    assert answer.code == (0 if prices else 2), answer.stderr
    if prices:
        made: dict[str, Any] = json.loads(answer.stdout)
        assert [line["option"] for line in made["lines"]] == ["reserved_1y"]
        assert 1 <= made["lines"][0]["units"] <= 12
        assert any("own-8 polandcentral: those of the bill" in note for note in made["notes"])


def test_a_commitment_whose_end_is_stated_counts_until_then(bill: Path, tmp_path: Path, run_cli: Run) -> None:
    """Six machines under a reservation that ends after 90 of 365 days: they are bought anew then, not now."""
    covered = f"{COVERED} {REGION}"
    expires = ("--expires", "res-1=2027-01-29")
    proof = tmp_path / "proof.json"
    found = run_cli(
        "commit", "--from-focus", bill, *expires, "-o", "json", "--no-regret", "--certificate", proof
    )
    assert found.code == 0, found.stderr
    answer: dict[str, Any] = json.loads(found.stdout)
    bought = {
        line["begins"]: (line["units"], line["now"]) for line in answer["lines"] if covered in line["serves"]
    }
    assert bought.keys() == {"2027-01-30"}
    assert 1 <= bought["2027-01-30"][0] <= 6
    assert not bought["2027-01-30"][1]
    assert [
        (one["serves"], one["units"], one["expires"], one["days_left"]) for one in answer["expiring"]
    ] == [(covered, 6.0, "2027-01-29", 90)]
    assert not any("owned all year" in note for note in answer["notes"])
    assert run_cli("verify", proof).code == 0
    late = planner.commit(bill=bill, expires={"res-1": date(2027, 10, 31)}, regret=False)
    kept = planner.commit(bill=bill, regret=False)
    assert late.plan.expected_usd == pytest.approx(kept.plan.expected_usd)  # the year's last day: all year
    assert answer["nothing"]["expected_usd"] > kept.nothing.expected_usd
    over = planner.commit(bill=bill, expires={"res-1": "2026-10-31"}, regret=False)
    assert over.nothing.expected_usd > answer["nothing"]["expected_usd"]  # ended with the bill
    shown = run_cli("commit", "--from-focus", bill, *expires, "--no-regret").unwrapped
    assert "next: planner commit --from-focus BILL --expires res-1=2027-01-29 --certificate" in shown
    assert (
        f"ask again on 2027-01-30, when reserved_1y of {covered} ends (as things stand, you would then buy"
        in shown
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("res-1", "write ID=DATE, such as ri-0001=2027-03-31"),
        ("res-1=soon", "write ID=DATE"),
        ("=2027-01-01", "with the id of a commitment of the bill"),
        ("res-1=9999-12-31", "--expires res-1=9999-12-31: no commitment ends then; check the year"),
        ("res-1=0001-01-01", "no commitment ends then"),
        ("res-2=2027-01-01", "no commitment of the bill is called so (did you mean res-1?); it shows res-1"),
    ],
)
def test_an_end_that_cannot_be_placed_is_named(bill: Path, run_cli: Run, text: str, said: str) -> None:
    found = run_cli("commit", "--from-focus", bill, "--expires", text)
    assert (found.code, said in found.stderr) == (2, True), found.stderr


def test_ids_may_be_given_by_their_last_part() -> None:
    known = {"arn:x/ri-1": (datetime(2026, 1, 1), datetime(2029, 1, 1))}
    names = ("arn:x/ri-1", "arn:y/ri-2", "arn:z/ri-2")
    made = with_stated(known, parse_ends(["ri-1=2027-03-31"]), names)
    assert made == {"arn:x/ri-1": (datetime(2026, 1, 1), datetime(2027, 4, 1))}
    with pytest.raises(
        InputError, match="several commitments of the bill are called so: arn:y/ri-2, arn:z/ri-2"
    ):
        with_stated(known, parse_ends(["ri-2=2027-03-31"]), names)
    with pytest.raises(InputError, match="ends on two dates"):
        parse_ends(["ri-1=2027-03-31", "ri-1=2027-04-30"])


def test_what_is_left_out_is_among_the_first_notes(tmp_path: Path, run_cli: Run) -> None:
    """Where most of the cost has no price of a commitment, a reader must see it without asking for more."""
    rows = [charge(FIRST + timedelta(at), FLAT, 2) for at in range(40)]
    rows += [charge(FIRST + timedelta(at), "own-8", 20) for at in range(40)]
    found = run_cli("commit", "--from-focus", write(tmp_path / "bill.csv", rows), "--no-regret")
    assert "own-8 in azure/polandcentral (91 % of the machines' cost)" in found.unwrapped


def test_a_refund_of_a_machine_that_it_does_not_name_is_not_left_out(tmp_path: Path, run_cli: Run) -> None:
    """It was named as a machine without a price, with "-0 % of the machines' cost"."""
    rows = [charge(FIRST + timedelta(number), FLAT, 3) for number in range(40)]
    rows.append(charge(FIRST + timedelta(20), "SKU-1", -1, ChargeClass="Correction"))
    found = run_cli("commit", "--from-focus", write(tmp_path / "bill.csv", rows), "--no-regret")
    assert found.code == 0 and "SKU-1" not in found.unwrapped


def test_one_source_of_demand(bill: Path, run_cli: Run) -> None:
    for arguments in (
        (),
        ("examples/commit.yaml", "--from-focus", bill),
        ("examples/commit.yaml", "--seed", "3"),
        ("examples/commit.yaml", "--avoid-loss"),
        ("examples/commit.yaml", "--expires", "ri-1=2027-01-01"),
    ):
        found = run_cli("commit", *arguments)
        assert (found.code, "--from-focus" in found.stderr) == (2, True)
    assert run_cli("commit", "--from-focus", "no-such-bill.csv").code == 2


def test_what_to_type_next_asks_the_same_bill(bill: Path, tmp_path: Path, run_cli: Run) -> None:
    """The command named "FILE", which nobody who asks about a bill has."""
    asked = ("--from-focus", bill, "--seed", "2", "--no-regret")
    shown = run_cli("commit", *asked).unwrapped
    assert (
        "next: planner commit --from-focus BILL --seed 2 --certificate proof.json, verify proof.json" in shown
    )
    proof = tmp_path / "proof.json"
    assert run_cli("commit", *asked, "--certificate", proof).code == 0
    assert run_cli("verify", proof).code == 0
