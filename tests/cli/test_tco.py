"""`planner tco` as a user types it: texts, data formats, the machine handed over, workloads, and mistakes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import planner
from catalogs.store.load import load_catalog
from catalogs.tariffs import load_tariffs
from planner.inputs.load import validate
from planner.market.offers import gather_offers
from tests.conftest import ROOT, Run

EXAMPLES = ROOT / "examples"
DAY = ("--as-of", "2026-11-20")
H100 = {"accelerator": "h100-80gb-sxm", "accelerators": 8, "power_kw": 1}


def write(folder: Path, **changes: Any) -> Path:
    """A small question; sections replace those of the base."""
    base: dict[str, Any] = {
        "version": 1, "kind": "tco", "name": "small",
        "machine": {
            "accelerator": "h100-80gb-sxm", "accelerators": 8, "power_kw": 10.2,
            "parts": [{"name": "server", "kind": "server", "usd": {"low": 250_000, "high": 400_000}}],
        },
        "own_site": {},
        "cloud": {"providers": ["aws"]},
    }  # fmt: skip
    path = folder / "question.yaml"
    path.write_text(yaml.safe_dump(base | changes))
    return path


def answer(run_cli: Run, path: Path, *more: str) -> dict[str, Any]:
    found = run_cli("tco", path, *DAY, "-o", "json", *more)
    assert found.code == 0, found.stderr
    values: dict[str, Any] = json.loads(found.stdout)
    return values


@pytest.mark.parametrize("name", ["tco-4xa100", "tco-8xh100", "tco-2x4090"])
def test_examples_read_on_one_screen(
    run_cli: Run, check_golden: Callable[[str, str], None], name: str
) -> None:
    found = run_cli("tco", EXAMPLES / f"{name}.yaml", *DAY)
    assert (found.code, found.stderr) == (0, "")
    check_golden(f"tco/{name}.txt", found.stdout)


def test_all_that_is_behind_the_screen(run_cli: Run, check_golden: Callable[[str, str], None]) -> None:
    found = run_cli("tco", EXAMPLES / "tco-4xa100.yaml", *DAY, "-o", "md", "--details", "all")
    check_golden("tco/details.md", found.stdout)


def test_data_formats_agree(tmp_path: Path, run_cli: Run) -> None:
    path = write(tmp_path)
    values = answer(run_cli, path)
    rows = list(csv.DictReader(io.StringIO(run_cli("tco", path, *DAY, "-o", "csv").stdout)))
    for way in (*values["figures"]["own"], *values["figures"]["rent"]):
        cash = [float(row["cash_usd"]) for row in rows if (row["row"], row["name"]) == ("cash", way["name"])]
        assert cash == pytest.approx(way["cash_usd"])
        assert sum(cash) == pytest.approx(way["total_usd"])
    inputs = {row["name"]: row for row in rows if row["row"] == "input"}
    assert set(inputs) == {factor["key"] for factor in values["factors"]}
    page = run_cli("tco", path, *DAY, "-o", "html").stdout
    assert page.count("<svg") >= 2
    from_python = planner.tco(path, as_of="2026-11-20").to_dict()
    assert json.loads(json.dumps(from_python)) == values


def rented(
    run_cli: Run, folder: Path, accelerator: str, count: int, option: str, **cloud: Any
) -> tuple[float, float]:
    """Cost over the life of one way to rent, per accelerator, and accelerators per instance."""
    machine: dict[str, Any] = {"accelerator": accelerator, "accelerators": count, "power_kw": 1.0}
    machine["parts"] = [{"name": "server", "kind": "server", "usd": 20_000.0 * count}]
    upkeep = {"failures_per_year": 0}
    path = write(folder, machine=machine, upkeep=upkeep, cloud={"options": [option], **cloud})
    values = answer(run_cli, path)
    return values["figures"]["rent"][0]["total_usd"] / count, values["fixed"]["rents"][0]["accelerators"]


@pytest.mark.parametrize("count", [1, 8, 16])
def test_a_commitment_is_chosen_by_the_whole_instances_that_it_takes(
    tmp_path: Path, run_cli: Run, count: int
) -> None:
    """Sixteen in one a2-megagpu-16g cost less each than one to eight, and more than eight where eight are wanted."""
    free, _ = rented(run_cli, tmp_path, "a100-40gb-sxm", count, "cud_1y")
    for kind in ("a2-highgpu-1g", "a2-highgpu-8g", "a2-megagpu-16g"):
        narrow, _ = rented(run_cli, tmp_path, "a100-40gb-sxm", count, "cud_1y", instance_types=[kind])
        assert free <= narrow * (1 + 1e-9)


def test_parts_of_a_card_do_not_stand_in_for_one(tmp_path: Path, run_cli: Run) -> None:
    """A third of an A10, which is 0.33333333 in the catalog, was rented four times for one card."""
    found = [rented(run_cli, tmp_path, "a10-24gb-pcie", count, "reserved_3y") for count in (1, 2, 4)]
    assert [each for each, _ in found] == pytest.approx([found[0][0]] * 3)
    assert all(accelerators >= 1 for _, accelerators in found)


def test_the_machine_that_is_handed_over_competes_in_a_plan(tmp_path: Path, run_cli: Run) -> None:
    owned = tmp_path / "own.yaml"
    values = answer(run_cli, EXAMPLES / "tco-8xh100.yaml", "--owned", str(owned))
    workload = yaml.safe_load((EXAMPLES / "llama-3-8b.yaml").read_text())
    workload["prices"] = {"offers": ["own.yaml"]}
    workload["constraints"] = {"providers": ["onprem"], "deadline": "365d"}
    (tmp_path / "workload.yaml").write_text(yaml.safe_dump(workload))
    plan = json.loads(run_cli("optimize", tmp_path / "workload.yaml", *DAY, "-o", "json").stdout)
    line = next(one for one in plan["lines"] if one["purchase_option"] == "owned")
    assert line["instance_type"] == "own-8xh100"
    assert float(line["marginal_usd_per_hour"]) == pytest.approx(
        values["handover"]["marginal_usd_per_hour"], abs=1e-4
    )


def test_a_workload_gives_the_price_of_a_useful_hour(tmp_path: Path, run_cli: Run) -> None:
    (tmp_path / "workload.yaml").write_bytes((EXAMPLES / "llama-3-8b.yaml").read_bytes())
    values = answer(run_cli, write(tmp_path, cloud={"workload": "workload.yaml"}))
    assert {one["basis"] for one in values["fixed"]["rents"]} == {"plan"}
    rates = {one["name"]: one["value"] for one in values["spreads"]}
    assert rates["spot"] < rates["on_demand"]


def test_a_card_that_nobody_rents_out_is_named_with_what_to_write(tmp_path: Path, run_cli: Run) -> None:
    (tmp_path / "workload.yaml").write_bytes((EXAMPLES / "llama-3-8b.yaml").read_bytes())
    machine = {**H100, "accelerator": "rtx4090-24gb-pcie", "parts": [{"name": "a", "usd": 1}]}
    done = run_cli("tco", write(tmp_path, cloud={"workload": "workload.yaml"}, machine=machine), *DAY)
    assert done.code == 2 and "cloud.accelerator" in done.stderr and "--set" not in done.stderr


def test_spot_is_rented_at_the_price_that_plans_expect_in_the_middle_of_the_life(
    tmp_path: Path, run_cli: Run
) -> None:
    """A run as long as two years, the longest whose price plans work out, pays the price of its middle as well."""
    day = date(2026, 11, 20)
    values = answer(run_cli, write(tmp_path, life={"years": 2}))
    rent = next(one for one in values["fixed"]["rents"] if one["option"] == "spot")
    stated = next(one for one in values["factors"] if one["key"] == "cloud.spot.usd_per_accelerator_hour")
    workload = validate(
        {"version": 1, "name": "any", "model": {"preset": "bert-large"},
         "training": {"steps": 1, "global_batch": 1, "sequence_length": 128}}
    )[0]  # fmt: skip
    assert workload is not None
    offers = gather_offers(load_catalog(None, as_of=day), workload, load_tariffs(), ".", day)
    row = next(row for row in range(offers.offers.n_rows) if offers.offer_id(row) == rent["offer_id"])
    start, middle = offers.usd_during(np.asarray([row, row]), np.asarray([0.0, 2 * 365 * 24.0])) / 8
    assert stated["value"] == pytest.approx(middle, rel=1e-6)
    assert stated["value"] != pytest.approx(start, rel=1e-3)


def test_names_cannot_break_out_of_yaml_or_a_page(tmp_path: Path, run_cli: Run) -> None:
    name = "x\nevil: true <script>alert(1)</script> =1+1"
    path = write(tmp_path, name=name)
    owned = tmp_path / "own.yaml"
    page = run_cli("tco", path, *DAY, "-o", "html", "--owned", owned)
    assert page.code == 0
    assert "<script>alert" not in page.stdout
    assert "evil" not in yaml.safe_load(owned.read_text())
    assert run_cli("tco", path, *DAY, "-o", "csv").code == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"own_site": None}, "give 'own_site' or 'colocation'"),
        ({"utilisation_ratio": 1.2}, "utilisation_ratio: must be at most 1, got 1.2"),
        ({"utilisation_ratio": {"low": 0.5, "value": 0.4}}, "low, value and high must rise in this order"),
        ({"utilisation_ratio": {"low": 0.5}}, "give 'value', or both 'low' and 'high'"),
        ({"utilisation_ratio": "much"}, "utilisation_ratio"),
        ({"utilization": 0.5}, "utilisation_ratio"),
        ({"own_site": {"pue": 0.9}}, "own_site.pue: must be at least 1"),
        ({"cloud": {"providers": ["nobody"]}}, "no offer of 'h100-80gb-sxm' fits providers"),
        ({"cloud": {"accelerator": "h101*"}}, "no offer in the catalog has 'h101*'"),
        ({"cloud": {"workload": "none.yaml"}}, "none.yaml"),
        ({"machine": {"accelerator": "h100", "accelerators": 8, "power_kw": 1, "parts": [{"name": "a", "usd": 1}]}},
         "'h100' is not an accelerator id"),
        ({"machine": {"accelerator": "h100-80gb-sxm", "accelerators": 8, "parts": [{"name": "a", "usd": 1}]}},
         "give 'power_kw', or 'watts' of the parts"),
        ({"machine": {**H100, "parts": [{"name": "a", "usd": 0}]}},
         "the parts cost nothing"),
        ({"machine": {**H100, "parts": [{"name": "a", "usd": 1, "kind": "accelerator", "count": 7}]}},
         "the parts hold 7"),
        ({"machine": {**H100, "parts": [{"name": "a", "usd": 1, "market": ["H100 SXN"]}]}},
         "did you mean 'H100 SXM'?"),
    ],
)  # fmt: skip
def test_mistakes_name_their_place(tmp_path: Path, run_cli: Run, changes: dict[str, Any], said: str) -> None:
    path = write(tmp_path, **changes)
    if changes.get("own_site", 1) is None:
        path.write_text(path.read_text().replace("own_site: null\n", ""))
    found = run_cli("tco", path, *DAY)
    assert found.code == 2
    assert said in found.stderr
    assert "Traceback" not in found.stderr


def test_other_commands_know_the_file(tmp_path: Path, run_cli: Run) -> None:
    path = EXAMPLES / "tco-8xh100.yaml"
    valid = run_cli("validate", path)
    assert (valid.code, "valid (tco server with 8 x H100)" in " ".join(valid.stdout.split())) == (0, True)
    assert "use `planner tco" in run_cli("optimize", path).stderr
    wrong = write(tmp_path, utilisation_ratio=2)
    assert run_cli("validate", wrong).code == 2


@pytest.mark.parametrize(
    ("accelerators", "people", "staff"), [(8, 0.25, 0.5), (2, 0.0625, 0.125), (16, 0.25, 0.5)]
)
def test_staff_that_nobody_stated_is_that_of_eight_accelerators_or_their_share(
    run_cli: Run, tmp_path: Path, accelerators: int, people: float, staff: float
) -> None:
    server = [{"name": "server", "kind": "server", "usd": 30_000 * accelerators}]
    path = write(tmp_path, machine={**H100, "accelerators": accelerators, "parts": server})
    done = run_cli("tco", path, *DAY, "--out", tmp_path / "answer.json")
    assert done.code == 0, done.stderr
    found = json.loads((tmp_path / "answer.json").read_text())
    (given,) = [one for one in found["factors"] if one["key"] == "own_site.staff_fte"]
    assert (given["value"], given["high"], given["origin"]) == (people, staff, "default")
    verified = run_cli("verify", tmp_path / "answer.json", "--workload", path)
    assert verified.code == 0, verified.stdout
    shown = run_cli("tco", path, *DAY).stdout
    assert f"({people:g} FTE, a default)" in shown
    four = write(tmp_path, machine={**H100, "accelerators": accelerators, "parts": server, "machines": 4})
    assert f"({4 * people:g} FTE, a default)" in run_cli("tco", four, *DAY).stdout


def test_a_machine_whose_resale_returns_all_that_was_paid_has_no_shares(run_cli: Run, tmp_path: Path) -> None:
    free = {"usd_per_kwh": 0, "staff_fte": 0, "hosting_usd_per_month": 0}
    upkeep = {"maintenance_ratio": 0, "failures_per_year": 0, "spares_ratio": 0}
    server = [{"name": "server", "kind": "server", "usd": 1000}]
    changes = {"own_site": free, "upkeep": upkeep, "life": {"residual_ratio": 1}, "capital_ratio": 0}
    path = write(tmp_path, machine={**H100, "parts": server}, **changes)
    done = run_cli("tco", path, *DAY)
    assert (done.code, done.stderr) == (0, "")
    assert "FOR  " not in done.stdout
