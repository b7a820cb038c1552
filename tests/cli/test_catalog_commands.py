"""`planner catalog`: answers on standard output, the footer on standard error, clear refusals."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from catalogs.store.read import bundled_directory
from tests.conftest import CliResult, Run


def lines_fit(text: str) -> bool:
    return all(len(line) <= 100 for line in text.splitlines())


def test_list_is_sorted_and_counts(run_cli: Run) -> None:
    found = run_cli("catalog", "list", "--accelerator", "a100", "--sort", "price-per-pflop-hour")
    assert found.code == 0
    assert lines_fit(found.stdout)
    assert found.stdout.startswith("Offers, cheapest first: 20 of ")
    assert "USD/PFLOP-H" in found.stdout
    assert "excluded by a flag" in found.stdout and found.stderr == ""  # said once
    data = run_cli("catalog", "list", "--accelerator", "a100", "-o", "csv")
    assert data.stderr.startswith("20 of ") and "excluded by a flag" in data.stderr


def test_quiet_leaves_out_the_footer(run_cli: Run) -> None:
    assert run_cli("-q", "catalog", "list", "--max-results", "1", "-o", "csv").stderr == ""
    assert run_cli("catalog", "list", "--max-results", "1", "-o", "csv", "-q").stderr == ""


def test_csv_and_json_hold_the_same_offers(run_cli: Run) -> None:
    question = ("catalog", "list", "--provider", "gcp", "--accelerator", "v100", "--max-results", "0")
    rows = list(csv.DictReader(io.StringIO(run_cli(*question, "-o", "csv").stdout)))
    offers = json.loads(run_cli(*question, "-o", "json").stdout)["offers"]
    assert [row["price_per_hour"] for row in rows] == [offer["price_per_hour"] for offer in offers]
    assert len(rows) == 88
    prices = [offer["usd_per_hour"] for offer in offers]
    assert prices == sorted(prices)
    assert offers[0]["offer_id"].startswith("gcp/")
    assert all(offer["source"] and offer["as_of"] for offer in offers)


def test_price_filter_and_flagged_offers(run_cli: Run) -> None:
    kept = run_cli("catalog", "list", "--instance-type", "p3.2xlarge", "--max-price", "1", "-o", "json")
    assert json.loads(kept.stdout)["offers"] == []
    shown = run_cli("catalog", "list", "--instance-type", "p3.2xlarge", "--max-price", "1", "--allow-flagged")
    assert "EXCLUDED BY" in shown.stdout
    assert "excluded by" not in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--accelerator", "a1000"), "did you mean a100-"),
        (("--provider", "amazon"), "unknown provider 'amazon'"),
        (("--region", "us-est-1"), "us-east-1"),
        (("--region", "eu"), "'eu*' takes all that begin with it"),
        (("--region", ""), "no region fits '' (nothing close to it is in the catalog)"),
        (("--purchase-option", "reserved"), "did you mean 'reserved_"),
        (("--sort", "cheapest"), "unknown sort key 'cheapest'"),
        (("--max-price", "-1"), "a number above 0"),
        (("--max-price", "nan"), "a number above 0"),
        (("--max-results", "-1"), "Invalid value"),
    ],
)
def test_wrong_filters_end_with_2(run_cli: Run, arguments: tuple[str, ...], message: str) -> None:
    found = run_cli("catalog", "list", *arguments)
    assert found.code == 2
    assert message in found.stderr
    assert not found.stdout
    assert "Traceback" not in found.stderr


def test_show_tells_specs_prices_flags_sources(run_cli: Run) -> None:
    found = run_cli("catalog", "show", "P4D.24xlarge")
    assert found.code == 0
    assert lines_fit(found.stdout)
    for text in (
        "8 x a100-40gb-sxm",
        "nvswitch",
        "312 TFLOP/s",
        "capacity_block",
        "$11.80",
        "no price known for: reserved_3y",
        "spot_equals_on_demand",
        "2026-07",
        "Sources",
    ):
        assert text in found.stdout, text


def test_show_says_when_no_price_or_speed_is_known(run_cli: Run) -> None:
    assert "no price is known for this type" in run_cli("catalog", "show", "ecs.gn7-c13g1.6xlarge").stdout
    assert "no peaks are known" in run_cli("catalog", "show", "ecs.gn8is.2xlarge").stdout
    assert "inference only" in run_cli("catalog", "show", "inf2.48xlarge").stdout
    assert "0.125 x l4-24gb-pcie" in run_cli("catalog", "show", "g6f.large").stdout


def test_show_of_every_type_fits_the_terminal(run_cli: Run) -> None:
    for name in (
        "n1-standard-64+nvidia-tesla-v100x8",
        "Standard_NC80adis_H100_v5",
        "p3.16xlarge",
        "trn2.48xlarge",
    ):
        assert lines_fit(run_cli("catalog", "show", name, "--max-results", "0").stdout)


def test_show_as_json(run_cli: Run) -> None:
    found = json.loads(run_cli("catalog", "show", "p5e.48xlarge", "-o", "json").stdout)
    assert found["instance_type"]["accelerator"] == "h200-141gb-sxm"
    assert found["accelerator"]["bf16_tflops"] == 989
    assert {offer["purchase_option"] for offer in found["offers"]} == {"spot", "capacity_block"}
    assert "on_demand" in found["unknown_options"]


def test_show_of_an_unknown_type_suggests(run_cli: Run) -> None:
    found = run_cli("catalog", "show", "p4d.24xl")
    assert found.code == 2
    assert "did you mean p4d.24xlarge" in found.stderr
    assert "did you mean ecs.gn7i-" in run_cli("catalog", "show", "gn7i").stderr


def test_doctor_reports_a_whole_catalog(run_cli: Run) -> None:
    found = run_cli("catalog", "doctor")
    assert found.code == 0
    assert lines_fit(found.stdout)
    assert "the catalog is intact" in found.stdout
    values = json.loads(run_cli("catalog", "doctor", "-o", "json").stdout)
    assert values["healthy"]
    assert sum(provider["n_offers"] for provider in values["providers"]) >= 6000
    assert sum(provider["n_regional_offers"] for provider in values["providers"]) >= 6000


def test_doctor_ends_with_4_on_a_broken_or_stale_catalog(run_cli: Run, tmp_path: Path) -> None:
    root = tmp_path / "snapshot"
    shutil.copytree(bundled_directory() / "lambda", root / "lambda")
    path = root / "lambda" / "offers.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    broken = run_cli("catalog", "--catalog-dir", str(root), "doctor")
    assert broken.code == 4
    assert "was changed or cut short" in broken.unwrapped
    assert run_cli("catalog", "--catalog-dir", str(root), "list").code == 4
    stale = run_cli("catalog", "doctor", "--max-age", "1d")
    assert stale.code == 4
    assert "older than 1d" in stale.stderr
    assert run_cli("catalog", "doctor", "--max-age", "soon").code == 2


def test_a_missing_catalog_is_named(run_cli: Run, tmp_path: Path) -> None:
    found = run_cli("catalog", "--catalog-dir", str(tmp_path / "none"), "list")
    assert found.code == 4
    assert "cannot read the catalog directory" in found.stderr


def test_list_imports_neither_pandas_nor_scipy(run_process: Run) -> None:
    code = (
        "import sys; from planner.cli import main; main(['catalog', 'list', '--provider', 'gcp']);"
        "print(sorted({'pandas', 'scipy', 'pydantic', 'boto3', 'rich'} & set(sys.modules)))"
    )
    found = run_process("-c", code, python=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_the_name_of_an_accelerator_leads_to_its_machines(run_cli: Callable[..., CliResult]) -> None:
    told = run_cli("catalog", "show", "H100")
    assert told.code == 2
    assert "'H100' is an accelerator" in told.stderr
    assert "p5.48xlarge" in told.stderr
    assert "`planner catalog list --accelerator H100`" in told.stderr
    assert run_cli("catalog", "list", "--accelerator", "H100", "--max-results", "1").code == 0
    assert "did you mean p4d.24xlarge" in run_cli("catalog", "show", "p4d").stderr
