"""Storage, purchase rules, quotas, interruption priors, exchange rates."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from catalogs.errors import CatalogError, CatalogInputError
from catalogs.tables.model import PurchaseOption
from catalogs.tariffs import DATA_DIRECTORY, load_tariffs
from catalogs.tariffs.rules import parse_lengths
from planner.inputs.commit_schema import COMMIT_OPTIONS
from tools.import_tariffs import import_tariffs

D = Decimal
OPTION_KEY = ("provider", "purchase_option", "option_variant")
TARIFFS = load_tariffs()
SHARED = Path(__file__).parents[3] / "shared" / "tariffs"


def test_storage_list_price_and_reference_region() -> None:
    own = TARIFFS.storage_price("aws", "us-east-1")
    other = TARIFFS.storage_price("aws", "eu-west-1")
    assert own is not None and (own.usd_per_gib_month, own.basis) == (D("0.023"), "list")
    assert other is not None and other.basis == "derived" and "us-east-1" in other.note
    disk = TARIFFS.storage_price("gcp", "us-east4", "system_disk")
    assert disk is not None and (disk.usd_per_gib_month, disk.basis) == (D("0.11"), "list")
    assert own.cost_usd(D(1000), D(730)) == 23


def test_storage_of_a_provider_without_tariff_is_the_dearest_known_never_zero() -> None:
    proxy = TARIFFS.storage_price("lambda", "us-east-1")
    known = [
        TARIFFS.storage_price(p, r)
        for p, r in (("aws", "us-east-1"), ("gcp", "us-central1"), ("azure", "westus"))
    ]
    assert proxy is not None and proxy.basis == "derived" and "lambda" in proxy.note
    assert proxy.usd_per_gib_month == max(price.usd_per_gib_month for price in known if price)
    assert TARIFFS.storage_price("aws", "us-east-1", "tape") is None


def test_alibaba_bills_its_system_disk_by_the_hour_in_yuan() -> None:
    fee = TARIFFS.system_disk_fee("alibaba", "cn-hangzhou")
    abroad = TARIFFS.system_disk_fee("alibaba", "ap-southeast-1")
    assert fee is not None and (fee.price_per_hour, fee.currency, fee.basis) == (D("0.084"), "CNY", "list")
    assert abroad is not None and abroad.basis == "derived"
    assert TARIFFS.system_disk_fee("aws", "us-east-1") is None


def test_on_demand_billing() -> None:
    for provider in ("aws", "gcp"):
        rule = TARIFFS.option_rule(provider, "on_demand")
        assert (rule.billing_granularity_s, rule.minimum_charge_s, rule.whole_term) == (1, 60, False)
    unknown = TARIFFS.option_rule("lambda", "on_demand")
    assert (unknown.billing_granularity_s, unknown.confidence) == (3600, "assumed")


@pytest.mark.parametrize(
    ("provider", "option", "hours"),
    [
        ("aws", "reserved_1y", 8760),
        ("aws", "reserved_3y", 26280),
        ("aws", "savings_plan_1y", 8760),
        ("aws", "savings_plan_3y", 26280),
        ("gcp", "cud_1y", 8760),
        ("gcp", "cud_3y", 26280),
        ("azure", "reserved_1y", 8760),
        ("azure", "reserved_3y", 26280),
        ("nobody", "cud_3y", 26280),
    ],
)
def test_commitments_owe_their_whole_term(provider: str, option: str, hours: float) -> None:
    rule = TARIFFS.option_rule(provider, option)
    assert rule.whole_term
    assert rule.min_term_hours == rule.max_term_hours == hours


def test_all_upfront_variant() -> None:
    assert TARIFFS.option_rule("aws", "reserved_1y", "standard.all_upfront").upfront_all
    assert not TARIFFS.option_rule("aws", "reserved_1y", "standard.no_upfront").upfront_all
    assert TARIFFS.option_rule("aws", "reserved_1y", "never.heard.of") == TARIFFS.option_rule(
        "aws", "reserved_1y"
    )


def test_capacity_blocks_come_in_days_then_weeks() -> None:
    rule = TARIFFS.option_rule("aws", "capacity_block")
    days = [hours // 24 for hours in rule.block_hours]
    assert days == [*range(1, 15), *range(21, 183, 7)]
    assert rule.max_instances == 64
    assert rule.upfront_all


@pytest.mark.parametrize(
    ("provider", "option", "cancellable", "book_days"),
    [
        ("aws", "capacity_block", False, 56),
        ("gcp", "future_reservation", False, 120),
        ("gcp", "flex_start", True, 0),
        ("azure", "capacity_block", None, None),  # no source states it
    ],
)
def test_what_is_booked_says_how_far_ahead_and_whether_for_good(
    provider: str, option: str, cancellable: bool | None, book_days: int | None
) -> None:
    rule = TARIFFS.option_rule(provider, option)
    assert (rule.cancellable, rule.book_days) == (cancellable, book_days)
    assert rule.is_booked


@pytest.mark.parametrize("option", ["on_demand", "spot", "reserved_1y", "cud_3y", "subscription", "owned"])
def test_other_options_are_not_booked(option: str) -> None:
    """A plan says nothing of booking them, with the catalog's providers and with others."""
    providers = ("aws", "gcp", "azure", "alibaba", "lambda", "somebody")
    assert not any(TARIFFS.option_rule(provider, option).is_booked for provider in providers)


def test_flex_start_and_spot_notices() -> None:
    assert TARIFFS.option_rule("gcp", "flex_start").max_term_hours == 168
    notices = {p: TARIFFS.option_rule(p, "spot").notice_s for p in ("aws", "gcp", "azure", "alibaba")}
    assert notices == {"aws": 120, "gcp": 30, "azure": 30, "alibaba": 300}
    assert TARIFFS.option_rule("onprem", "owned").billing_granularity_s == 1


def test_options_that_are_owed_for_a_term_are_discounts() -> None:
    options = [str(option) for option in PurchaseOption]
    discounts = {option for option in options if TARIFFS.option_rule("any", option).is_discount}
    assert discounts == {*COMMIT_OPTIONS, "subscription"}
    fixed = {option for option in discounts if PurchaseOption(option).term_hours > 0}
    assert fixed == set(COMMIT_OPTIONS)  # the schema's list is that of the rules
    with (DATA_DIRECTORY / "purchase_options.csv").open(encoding="utf-8", newline="") as stream:
        keys = [[row[name] for name in OPTION_KEY] for row in csv.DictReader(stream)]
    stated = {key[1] for key in keys if TARIFFS.option_rule(*key).is_discount}
    assert stated == discounts  # at no provider another one


def test_lengths_notation() -> None:
    assert parse_lengths("") == ()
    assert parse_lengths("24") == (24,)
    assert parse_lengths("24-72/24 168-336/168") == (24, 48, 72, 168, 336)


@pytest.mark.parametrize(
    ("key", "code", "unit"),
    [
        (("aws", "p4d", "a100-40gb-sxm", "on_demand"), "L-417A185B", "vCPU"),
        (("aws", "p3dn", "v100-32gb-sxm", "reserved_1y"), "L-417A185B", "vCPU"),
        (("aws", "g5", "a10g-24gb-pcie", "on_demand"), "L-DB2E81BA", "vCPU"),
        (("aws", "p4d", "a100-40gb-sxm", "spot"), "L-7212CCBC", "vCPU"),
        (("aws", "g6e", "l40s-48gb-pcie", "spot"), "L-3819A6DF", "vCPU"),
        (("gcp", "a2-highgpu", "a100-40gb-sxm", "on_demand"), "NVIDIA_A100_GPUS", "GPU"),
        (("gcp", "a2-ultragpu", "a100-80gb-sxm", "spot"), "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS", "GPU"),
        (("gcp", "g2-standard", "l4-24gb-pcie", "flex_start"), "PREEMPTIBLE_NVIDIA_L4_GPUS", "GPU"),
        (("azure", "NC_T4_v3", "t4-16gb-pcie", "on_demand"), "Standard NCASv3_T4 Family", "vCPU"),
        (("azure", "ND_H100_v5", "h100-80gb-sxm", "spot"), "lowPriorityCores", "vCPU"),
    ],
)
def test_quota_names(key: tuple[str, str, str, str], code: str, unit: str) -> None:
    rule = TARIFFS.quota_rule(*key)
    assert rule is not None
    assert (rule.code, rule.unit) == (code, unit)


def test_quota_without_a_code_still_has_its_name_and_unknown_ones_are_none() -> None:
    family = TARIFFS.quota_rule("azure", "ND_MI300X_v5", "mi300x-192gb-oam", "on_demand")
    assert family is not None and "ND_MI300X_v5" in family.name and family.code == ""
    told = TARIFFS.quota_rule("azure", "ND_H100_v5", "h100-80gb-sxm", "on_demand")
    assert told is not None and told.code == "standardNDSH100v5Family"
    assert TARIFFS.quota_rule("lambda", "gpu_a100", "a100-40gb-unknown", "on_demand") is None
    assert TARIFFS.quota_rule("aws", "trn1", "trn1-32gb", "on_demand") is None


def test_measured_band_and_prior_evidence() -> None:
    measured = TARIFFS.interruption_prior("gcp", "a3-highgpu", "h100-80gb-sxm", "")
    band = TARIFFS.interruption_prior("aws", "p4d", "a100-40gb-sxm", "<5%")
    family = TARIFFS.interruption_prior("aws", "p4d", "a100-40gb-sxm", "")
    prior = TARIFFS.interruption_prior("azure", "ND_H100_v5", "h100-80gb-sxm", "")
    assert [e.basis for e in (measured, band, family, prior)] == ["measured", "band", "band", "prior"]
    assert prior.rate_per_hour >= measured.rate_per_hour
    assert prior.mean_wait_hours >= measured.mean_wait_hours
    assert measured.gang_rate_per_hour(16) < 16 * measured.rate_per_hour
    assert measured.gang_rate_per_hour(16) > measured.gang_rate_per_hour(1) == measured.rate_per_hour
    assert measured.gang_wait_hours(16) >= measured.gang_wait_hours(1)


def test_higher_bands_are_interrupted_more() -> None:
    bands = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")
    rates = [TARIFFS.interruption_prior("aws", "g5", "a10g-24gb-pcie", band).rate_per_hour for band in bands]
    assert rates == sorted(rates)
    assert len(set(rates)) == 5


def test_exchange_rates_are_dated() -> None:
    newest = TARIFFS.usd_per("CNY")
    assert newest.as_of == "2026-10-30"
    assert float(newest.rate) == pytest.approx(1 / 6.652882, rel=1e-8)
    assert TARIFFS.usd_per("CNY", date(2025, 3, 15)).as_of == "2025-02-28"
    assert "before" in TARIFFS.usd_per("CNY", date(2020, 1, 1)).note
    assert TARIFFS.usd_per("USD").rate == 1
    with pytest.raises(CatalogInputError, match="EUR"):
        TARIFFS.usd_per("XYZ")


def test_every_row_has_source_date_and_confidence() -> None:
    for path in DATA_DIRECTORY.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as stream:
            for number, row in enumerate(csv.DictReader(stream), start=2):
                assert row["source"] and row["as_of"], f"{path.name}:{number}"
                assert row.get("confidence", "read"), f"{path.name}:{number}"


def test_missing_or_damaged_tables_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"transfer\.csv.*re-import"):
        load_tariffs(tmp_path).transfer_curve("aws", "a", "aws", "b")
    (tmp_path / "fx.csv").write_text("currency\nCNY\n", encoding="utf-8")
    with pytest.raises(CatalogError, match="column"):
        load_tariffs(tmp_path).usd_per("CNY")


def test_loading_imports_nothing_heavy() -> None:
    """What it costs is printed by `benchmarks.small_costs`."""
    code = (
        "import sys; from catalogs.tariffs import load_tariffs; x = load_tariffs(); "
        "x.transfer_curve('aws','us-east-1','gcp','us-central1'); x.storage_price('aws','us-east-1'); "
        "x.option_rule('aws','spot'); x.quota_rule('aws','p5','h100-80gb-sxm','spot'); x.usd_per('CNY'); "
        "x.interruption_prior('aws','p5','h100-80gb-sxm',''); "
        "print(sorted({'pandas', 'numpy', 'scipy', 'yaml', 'requests'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout == "[]\n"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the collected tariff tables are not beside the project")
def test_the_bundled_tables_are_what_the_import_makes(tmp_path: Path) -> None:
    import_tariffs(SHARED, tmp_path)
    for path in tmp_path.glob("*.csv"):
        assert path.read_bytes() == (DATA_DIRECTORY / path.name).read_bytes(), path.name


def test_import_of_a_wrong_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CatalogInputError, match=re.escape(str(tmp_path / "transfer_prices.csv"))):
        import_tariffs(tmp_path, tmp_path / "out")
