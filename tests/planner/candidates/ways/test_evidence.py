"""Which evidence the hazards of an offer stand on, and that the ready-made figures are those of the hazards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.plan.model import Plan
from planner.spot.hazards import HazardTable, load_hazards, make_table, mean_spell_hours
from planner.spot.hazards_cells import AGE_EDGES_HOURS, family_of
from planner.spot.hazards_evidence import model_from_files
from planner.spot.policy.job import SpotZone
from planner.spot.pools import DATA_FILE, figures_at, figures_of, find_pool, level_sd, pools_text, spell_sd
from planner.spot.pools import family_of as own_family
from tests.planner.candidates.ways.cases import ONE_ZONE, answer, on_demand, spot
from tests.planner.spine_catalogs import Machine


def test_the_ready_made_figures_are_those_of_the_hazards() -> None:
    assert DATA_FILE.read_text(encoding="utf-8") == pools_text(), "run python -m planner.spot.pools"


def test_families_are_read_as_the_hazards_read_them() -> None:
    for kind in {cell.instance_type for cell in load_hazards().cells}:
        assert own_family(kind) == family_of(kind)


def test_exponential_spells_give_the_plain_renewal_model() -> None:
    ages = len(AGE_EDGES_HOURS)
    table = make_table(np.full(ages, 0.5), np.full(ages, 0.25), (0.0, 0.0), 100.0, "zone x")
    assert figures_of(table) == pytest.approx((0.5, 4.0, 4.0, 0.0, 1.0), rel=1e-3)


def test_the_figures_are_means_over_what_the_level_may_be() -> None:
    """Levels move spells whose hazard falls with age by more than in proportion."""
    table = load_hazards().table_for(SpotZone("us-west-2a", "us-west-2", "p3.2xlarge", 1.0, "aws"))
    rng = np.random.default_rng(5)
    level = np.exp(table.frailty_sd_up * rng.standard_normal(2000))
    down = [mean_spell_hours(table.up_per_hour * one) for one in level]
    level = np.exp(table.frailty_sd_down * rng.standard_normal(2000))
    up = [mean_spell_hours(table.down_per_hour * one) for one in level]
    rate, wait, _, sd, _ = figures_of(table)
    assert wait == pytest.approx(np.mean(down), rel=0.1)
    assert rate == pytest.approx(np.mean(1.0 / np.asarray(up)), rel=0.1)
    assert sd == pytest.approx(np.hypot(np.std(np.log(down)), np.std(np.log(up))) / np.sqrt(2.0), rel=0.1)


@pytest.mark.parametrize("sd", [0.0, 0.3, 0.88])
def test_levels_and_spells_spread_as_each_other(sd: float) -> None:
    table = load_hazards().table_for(SpotZone("us-west-2a", "us-west-2", "p3.2xlarge", 1.0, "aws"))
    for hazard in (table.down_per_hour, table.up_per_hour):
        level = level_sd(table.age_edges_hours, hazard, sd)
        assert level <= sd
        assert spell_sd(table.age_edges_hours, hazard, level) == pytest.approx(sd, abs=1e-6)


def test_the_nearest_record_is_taken() -> None:
    zone = find_pool("aws", "p3.2xlarge", "us-west-2", "us-west-2a")
    region = find_pool("aws", "p3.2xlarge", "us-west-2", "usw2-az1")
    kind = find_pool("aws", "p3.2xlarge", "ap-south-1", "")
    size = find_pool("aws", "p3.8xlarge", "ap-south-1", "", 4.0)
    assert zone is not None and region is not None and kind is not None and size is not None
    for pool, word in ((zone, "zone"), (region, "region"), (kind, "all zones"), (size, "family")):
        assert word in pool.source
    assert find_pool("azure", "Standard_NC6s_v3", "eastus", "") is None
    gangs = np.asarray([1.0, 2.0, 4.0, 16.0, 300.0])
    figures = figures_at([size, zone], np.asarray([1, 1, 1, 1, 0]), gangs)
    assert figures.shape == (5, 5)
    assert np.all(np.diff(np.log(figures[:, :3]), 2) == pytest.approx(0.0, abs=1e-9))
    assert figures[:, 3] == pytest.approx(zone.values[2])
    assert figures[:, 4] == pytest.approx(size.values[-1]), "flat beyond the largest gang recorded"


def test_records_win_over_bands_and_bands_over_priors() -> None:
    new = Machine(
        "aws", "p5.48xlarge", "p5", "h100-80gb-sxm", 8.0, 79.0, 192.0, 2048.0, internode_gbps=3200.0
    )
    offers = [*ONE_ZONE, on_demand("90", new), spot("30", "use1-az2", new), spot("31", "", new)]
    offers[3] = type(offers[3])(new, "us-east-1", "30", "spot", zone="use1-az2", interruption_band="<5%")
    made = answer(offers, 90.0)
    found = made.context.market.offer_set.offers
    rows = np.flatnonzero(found.equals("purchase_option", "spot"))
    known = made.context.gang_risk(rows, np.ones(len(rows), dtype=np.int64))
    told = {
        (str(found["instance_type"][row]), str(found["zone"][row])): known.sources[int(source)]
        for row, source in zip(rows.tolist(), known.source.tolist(), strict=True)
    }
    assert told["p3.2xlarge", "use1-az1"].startswith("recorded")
    assert told["p5.48xlarge", "use1-az2"].startswith("band")
    assert told["p5.48xlarge", ""].startswith(("band", "prior"))


def own_table_of(log: Path, plan: Plan) -> HazardTable:
    """What the records say of the place of the plan's only spot line."""
    line = next(line for line in plan.lines if line.purchase_option == "spot")
    zone = SpotZone(
        line.zone,
        line.region,
        line.instance_type,
        1.0,
        line.provider,
        line.nodes,
        accelerators=round(line.accelerators_per_node),
    )
    return model_from_files([log]).table_for(zone)


def test_own_records_change_what_is_expected(tmp_path: Path) -> None:
    rows = [
        f"aws,us-east-1,use1-az1,p3.2xlarge,1,2026-10-{day:02d}T00:00:00Z,2026-10-{day:02d}T23:30:00Z,preempted"
        for day in range(1, 29)
    ]
    header = "provider,region,zone,instance_type,gang,start,end,reason"
    (tmp_path / "log.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    public = answer(ONE_ZONE, 30.0).plan
    own = answer(ONE_ZONE, 30.0, folder=tmp_path, spot={"evidence": ["log.csv"]}).plan
    assert public.launch is not None and own.launch is not None
    assert own.launch.places[0].mean_up_hours > 3 * public.launch.places[0].mean_up_hours
    assert own.launch.places[0].evidence.startswith("your records")
    # the plan holds them, so that who follows it needs no file; public records are in every planner
    records = own.launch.places[0].records
    assert records is not None and "use1-az1" in records.source and public.launch.places[0].records is None
    table = own_table_of(tmp_path / "log.csv", own)
    assert records.down_per_hour == tuple(table.down_per_hour) and records.up_per_hour == tuple(
        table.up_per_hour
    )
    assert Plan.from_dict(own.to_dict()) == own
    assert own.total_usd < public.total_usd


@pytest.mark.parametrize(("column", "words"), [("", "column instance_type"), ("g5.xlarge", "g5.xlarge")])
def test_records_of_other_types_are_told_to_say_nothing(tmp_path: Path, column: str, words: str) -> None:
    def warnings(instance_type: str) -> tuple[str, ...]:
        line = f"use1-az1,us-east-1,aws,{instance_type},2026-10-01T00:00Z,2026-10-01T09:00Z,preempted"
        text = f"zone,region,provider,instance_type,start,end,reason\n{line}\n"
        (tmp_path / "log.csv").write_text(text, encoding="utf-8")
        return answer(ONE_ZONE, 30.0, folder=tmp_path, spot={"evidence": ["log.csv"]}).plan.warnings

    assert any(words in text and "not p3.2xlarge" in text for text in warnings(column))
    assert not any("your spot records cover" in text for text in warnings("p3.8xlarge"))


@pytest.mark.parametrize("kind", ["p3.2xlarge", "p5.48xlarge"])  # known from records, and from a prior alone
def test_prices_move_the_zones_of_their_type_and_no_other(tmp_path: Path, kind: str) -> None:
    new = Machine(
        "aws", "p5.48xlarge", "p5", "h100-80gb-sxm", 8.0, 79.0, 192.0, 2048.0, internode_gbps=3200.0
    )
    offers = [*ONE_ZONE, spot("0.93", "use1-az2"), on_demand("90", new)]
    offers += [spot("30", "use1-az1", new), spot("31", "use1-az2", new)]
    rows = "".join(
        f"2026-11-01,{zone},{kind},{usd}\n" for zone, usd in (("use1-az1", 1.0), ("use1-az2", 2.0))
    )
    header = "time,zone,instance_type,spot_usd_per_hour\n"
    (tmp_path / "prices.csv").write_text(header + rows, encoding="utf-8")

    def rates(**changes: object) -> tuple[dict[tuple[str, str], float], list[str]]:
        context = answer(offers, 90.0, folder=tmp_path, **changes).context
        found = context.market.offer_set.offers
        at = np.flatnonzero(found.equals("purchase_option", "spot"))
        known = context.gang_risk(at, np.ones(len(at), dtype=np.int64))
        places = [(str(found["instance_type"][row]), str(found["zone"][row])) for row in at]
        told = [known.sources[int(source)] for source in known.source]
        return dict(zip(places, known.pool.rate.tolist(), strict=True)), told

    plain, _ = rates()
    moved, told = rates(spot={"evidence": ["prices.csv"]})
    for place, rate in plain.items():
        if place[0] != kind:
            assert moved[place] == pytest.approx(rate)
    assert moved[kind, "use1-az1"] < plain[kind, "use1-az1"]
    assert moved[kind, "use1-az2"] > plain[kind, "use1-az2"]
    assert sum(text.endswith("moved by spot price") for text in told) == 2


def test_a_record_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"log\.csv"):
        answer(ONE_ZONE, 30.0, folder=tmp_path, spot={"evidence": ["log.csv"]})
    with pytest.raises(InputError, match=r"none\.csv"):
        answer(ONE_ZONE, 30.0, folder=tmp_path, spot={"evidence": ["none.csv"]})
