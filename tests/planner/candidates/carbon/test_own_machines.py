"""Own machines: the user states their grid and PUE; both reach limits, plans, fronts and `verify`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalogs.errors import CatalogInputError
from catalogs.offers.static import load_static
from catalogs.tariffs.carbon import load_carbon
from tests.conftest import CliResult

Run = Callable[..., CliResult]
DAY = ("--as-of", "2026-11-20")
OWN: dict[str, Any] = {
    "instance_type": "own-8xa100", "region": "basement", "accelerator": "a100-80gb-sxm", "accelerator_count": 8,
    "vcpus": 128, "memory_gib": 1024, "intra_node": "nvswitch", "intra_node_gb_per_s": 600, "nodes": 1,
    "power_kw": 6.5, "usd_per_kwh": 0.146,
}  # fmt: skip
JOB: dict[str, Any] = {
    "version": 1, "name": "own", "model": {"preset": "bert-large"},
    "training": {"tokens": 2e9, "global_batch": 256, "sequence_length": 512, "precision": "bf16"},
    "data": {"tokens": 2e9, "location": "onprem"}, "prices": {"offers": ["own.yaml"]},
    "constraints": {"max_nodes": 2, "deadline": "30d", "purchase_options": ["owned", "on_demand"]},
}  # fmt: skip
pytestmark = pytest.mark.catalog("small")


def machines(folder: Path, **stated: Any) -> Path:
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "machines": [OWN | stated]}), encoding="utf-8")
    return path


def plan(folder: Path, run: Run, limits: dict[str, Any] | None = None, **stated: Any) -> dict[str, Any]:
    """A plan of the job with the own machine, which `verify` has recomputed."""
    machines(folder, **stated)
    job = JOB | {"constraints": JOB["constraints"] | (limits or {})}
    (folder / "job.yaml").write_text(yaml.safe_dump(job), encoding="utf-8")
    saved = folder / "plan.json"
    saved.write_text(run("optimize", str(folder / "job.yaml"), "-o", "json", *DAY).stdout, encoding="utf-8")
    checked = run("verify", str(saved), "--workload", str(folder / "job.yaml"))
    assert checked.code == 0, checked.stdout + checked.stderr
    found: dict[str, Any] = json.loads(saved.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    ("stated", "grams", "basis"),
    [
        ({"grid_gco2e_per_kwh": 41.5}, 41.5, "stated"),
        ({"grid": "gcp/europe-west3"}, None, "same_grid"),
        ({"grid": "azure/norwayeast"}, None, "national"),
        ({"grid": "Norway"}, None, "national"),
        ({"grid": "no"}, None, "national"),
    ],
)
def test_a_grid_is_a_figure_a_region_or_a_country(
    tmp_path: Path, stated: dict[str, Any], grams: float | None, basis: str
) -> None:
    (site,) = load_static(machines(tmp_path, **stated)).sites
    assert site is not None and site.grid is not None
    place = "gcp/europe-west3" if "europe" in str(stated) else "azure/norwayeast"
    region = load_carbon().grid(*place.split("/"))
    assert region is not None
    assert site.grid.gco2e_per_kwh == (grams or region.gco2e_per_kwh) and site.grid.basis == basis
    # another's grid is never surer than that region's
    assert grams or site.grid.spread_ratio >= region.spread_ratio
    assert site.overhead == load_carbon().overhead("onprem")


def test_the_code_of_norway_is_a_country_without_quotes(tmp_path: Path) -> None:
    path = machines(tmp_path)
    text = path.read_text(encoding="utf-8").replace("  nodes: 1\n", "  nodes: 1\n  grid: NO\n")
    path.write_text(text, encoding="utf-8")
    (site,) = load_static(path).sites
    assert site is not None and site.grid is not None and site.grid.basis == "national"


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"grid": "Atlantis"}, "grid: 'Atlantis' has no figure; name a region"),
        ({"grid": "gcp/mars-west1"}, "grid: 'gcp/mars-west1' has no figure"),
        ({"grid": "lambda/europe-south-1"}, "has no figure"),  # nobody publishes it
        ({"grid": "NO", "grid_gco2e_per_kwh": 30}, "give either grid or grid_gco2e_per_kwh, not both"),
        ({"grid_gco2e_per_kwh": 0}, "grid_gco2e_per_kwh: 0 is not above 0"),
        ({"grid_gco2e_per_kwh": 300000}, "at most 2000"),
    ],
)
def test_a_wrong_grid_is_named_with_its_line(tmp_path: Path, stated: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogInputError, match=r"own\.yaml:\d+: ") as caught:
        load_static(machines(tmp_path, **stated))
    assert message in str(caught.value)


def test_a_stated_pue_replaces_the_industry_mean(tmp_path: Path) -> None:
    assert load_static(machines(tmp_path)).sites == (None,)
    (site,) = load_static(machines(tmp_path, pue=1.2)).sites
    assert site is not None and site.grid is None
    assert (site.overhead.low, site.overhead.pue, site.overhead.high) == (1.2, 1.2, 1.2)


def test_an_unknown_grid_is_said_and_refused_under_a_limit(tmp_path: Path, run_cli: Run) -> None:
    free = plan(tmp_path, run_cli)
    assert free["lines"][0]["instance_type"] == "own-8xa100"
    assert free["carbon"]["operational_kgco2e"] is None and free["carbon"]["energy_kwh"] > 0
    unknown = "grid intensity of onprem/basement: not stated: grid, grid_gco2e_per_kwh of the machine"
    assert unknown in free["carbon"]["unknown"]
    limited = plan(tmp_path, run_cli, {"max_kgco2e": 1e6})
    assert limited["lines"][0]["provider"] != "onprem"
    assert {row["name"]: row["removed"] for row in limited["filters"]}["unknown_carbon"] > 0


def test_a_stated_grid_is_in_the_plan_the_limit_and_the_front(tmp_path: Path, run_cli: Run) -> None:
    known = plan(tmp_path, run_cli, {"max_kgco2e": 1e6}, grid_gco2e_per_kwh=100, pue=1.2)
    carbon, (line,) = known["carbon"], known["carbon"]["lines"]
    assert known["lines"][0]["instance_type"] == "own-8xa100"
    assert (line["grid_gco2e_per_kwh"], line["grid_basis"], line["grid_year"]) == (100, "stated", None)
    assert (line["pue_ratio"], line["pue_basis"]) == (1.2, "stated")
    assert carbon["operational_kgco2e"] == pytest.approx(carbon["energy_kwh"] * 0.1)
    twice = plan(tmp_path, run_cli, {"max_kgco2e": 1e6}, grid_gco2e_per_kwh=200, pue=1.2)
    assert twice["carbon"]["operational_kgco2e"] == pytest.approx(2 * carbon["operational_kgco2e"])
    # just below what it emits, the plan is another
    less = {"max_kgco2e": twice["carbon"]["operational_kgco2e"] * 0.999}
    assert plan(tmp_path, run_cli, less, grid_gco2e_per_kwh=200, pue=1.2)["lines"][0]["provider"] != "onprem"

    screen = run_cli("optimize", str(tmp_path / "job.yaml"), "--set", "constraints.max_kgco2e=1000000",
                     "--details", "carbon", *DAY).unwrapped  # fmt: skip
    assert "200 (stated)" in screen and "1.2 stated" in screen
    front = tmp_path / "front.json"
    front.write_text(
        run_cli("frontier", str(tmp_path / "job.yaml"), "--against", "carbon", "-o", "json", *DAY).stdout,
        encoding="utf-8",
    )
    last = json.loads(front.read_text(encoding="utf-8"))["points"][-1]
    assert last["instance_type"] == "own-8xa100"
    assert last["operational_kgco2e"] == pytest.approx(twice["carbon"]["operational_kgco2e"])
    assert run_cli("verify", str(front), "--workload", str(tmp_path / "job.yaml")).code == 0


def test_verify_finds_another_grid(tmp_path: Path, run_cli: Run) -> None:
    answer = plan(tmp_path, run_cli, grid_gco2e_per_kwh=100)
    forged_file, workload = tmp_path / "forged.json", str(tmp_path / "job.yaml")
    for path, value in (("grid_gco2e_per_kwh", 50), ("grid_basis", "published")):
        forged = json.loads(json.dumps(answer))
        forged["carbon"]["lines"][0][path] = value
        forged_file.write_text(json.dumps(forged), encoding="utf-8")
        found = run_cli("verify", str(forged_file), "--workload", workload)
        assert found.code == 5 and path in found.stdout, found.stdout
    machines(tmp_path, grid_gco2e_per_kwh=101)  # the file says otherwise now
    forged_file.write_text(json.dumps(answer), encoding="utf-8")
    assert run_cli("verify", str(forged_file), "--workload", workload).code == 5


def test_a_fleet_on_own_machines_keeps_the_limit(tmp_path: Path, run_cli: Run) -> None:
    machines(tmp_path, grid="gcp/europe-west3", nodes=2)
    job = JOB | {
        "kind": "fleet", "fleet": {"runs": 4}, "constraints": JOB["constraints"] | {"max_kgco2e": 1e6},
    }  # fmt: skip
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(job), encoding="utf-8")
    saved = tmp_path / "fleet.json"
    saved.write_text(
        run_cli("optimize", str(tmp_path / "fleet.yaml"), "-o", "json", *DAY).stdout, encoding="utf-8"
    )
    own = next(
        line
        for line in json.loads(saved.read_text("utf-8"))["carbon"]["lines"]
        if "onprem" in line["offer_id"]
    )
    assert own["grid_basis"] == "same_grid" and own["operational_kgco2e"] > 0
    assert run_cli("verify", str(saved), "--workload", str(tmp_path / "fleet.yaml")).code == 0
