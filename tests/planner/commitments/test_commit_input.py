"""From files to futures: histories, FOCUS rows, scenarios, owned commitments; every bad cell is named."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.commitments.advise import advise
from planner.commitments.build import build_model, horizon_years
from planner.commitments.history import read_history
from planner.commitments.prices import pool_prices
from planner.commitments.scenarios import draw_futures, read_futures
from planner.errors import InputError
from planner.inputs.commit_load import LoadedCommit, load_commit
from planner.inputs.commit_schema import CommitQuestion, Pool
from planner.inputs.documents import Document
from planner.inputs.faults import Source

POOLS = (
    Pool(name="a", provider="aws", region="us-east-1", instance_type="p4d.24xlarge"),
    Pool(name="b", provider="aws", region="us-east-1", instance_type="g5.xlarge"),
)
FOCUS = (
    "ChargePeriodStart,ChargePeriodEnd,RegionId,x_InstanceType,ConsumedQuantity,ConsumedUnit,ChargeCategory"
)


HEAD = "version: 1\nname: x\nstart: 2027-01-01\npools:\n- {name: a, provider: p, region: r, prices: {on_demand: 1}}\n"


def question(**changes: Any) -> CommitQuestion:
    base: dict[str, Any] = {
        "version": 1,
        "name": "q",
        "start": "2027-01-01",
        "pools": [
            {
                "name": "a", "provider": "x", "region": "r",
                "prices": {"on_demand": 10.0, "reserved_1y": 6.0, "reserved_3y": 4.0},
            },
            {"name": "b", "provider": "x", "region": "r", "prices": {"on_demand": 3.0, "reserved_1y": 2.0}},
        ],
        "demand": {"planned": [{"pool": "a", "instances": 5, "start": "2027-01-01", "end": "2029-12-31"}]},
        "scenarios": {"count": 3, "hours_per_year": 48},
    }  # fmt: skip
    return CommitQuestion.model_validate(base | changes)


def loaded(asked: CommitQuestion, folder: Path) -> LoadedCommit:
    return LoadedCommit(asked, Document(folder / "q.yaml", b"", Source("q.yaml", "")))


def built(asked: CommitQuestion, **more: float) -> Any:
    prices = pool_prices(None, asked.pools, "q.yaml")
    years = horizon_years(asked, prices)
    return build_model(asked, prices, draw_futures(asked, None, years), years, **more)


class TestHistory:
    """Reading usage."""

    def test_hours_without_rows_are_hours_without_use(self, tmp_path: Path) -> None:
        path = tmp_path / "h.csv"
        path.write_text("hour,pool,instances\n2026-01-05T03:00Z,a,2\n2026-01-05T01:00+01:00,b,1.5\n\n")
        history = read_history(path, POOLS)
        assert history.start.isoformat() == "2026-01-05T00:00:00+00:00"
        assert history.demand.tolist() == [[0, 1.5], [0, 0], [0, 0], [2, 0]]
        assert history.notes == ("2 of 4 hours of the history have no use",)

    def test_numbers_of_hours_and_gzip_are_read(self, tmp_path: Path) -> None:
        path = tmp_path / "h.csv.gz"
        path.write_bytes(gzip.compress(b"\xef\xbb\xbfhour,pool,instances\n0,a,1\n1,a,2\n"))
        assert read_history(path, POOLS).demand[:, 0].tolist() == [1, 2]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("hour,pool,instances\n", "no rows"),
            ("hour,pools,instances\n", r":1: there is no column 'pool' \(did you mean 'pools'\?\)"),
            ("hour,pool,instances\n0,a,1\n1,a,x\n", r":3: instances: must be a number, got 'x'"),
            ("hour,pool,instances\n0,a,-1\n", r":2: instances: must be a finite number of at least 0"),
            ("hour,pool,instances\n0,a,nan\n", r":2: instances: must be a finite number"),
            ("hour,pool,instances\nyesterday,a,1\n", r":2: hour: must be a moment like"),
            ("hour,pool,instances\n0,A1,1\n", r":2: pool: no pool is called 'A1'"),
            ("hour,pool,instances\n0,a,1\n0,a,2\n", r":3: hour 0 of pool a is already listed above"),
            ("hour,pool,instances\n0,a\n", r":2: has not the 3 cells"),
            ("hour,pool,instances\n0,a,1,9\n", r":2: has not the 3 cells"),
            ("hour,pool,instances\n0,a,1\n2026-01-01,a,1\n", r":3: hour: moments and numbers"),
            ("hour,pool,instances\n0,a,1\n99999999,a,1\n", "spans 100,000,000 hours"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_line(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "h.csv"
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_history(path, POOLS)

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no such file"):
            read_history(tmp_path / "none.csv", POOLS)
        (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(InputError, match="UTF-8"):
            read_history(tmp_path / "x.csv", POOLS)
        (tmp_path / "x.gz").write_bytes(b"\x1f\x8bbroken")
        with pytest.raises(InputError, match="cannot be read"):
            read_history(tmp_path / "x.gz", POOLS)

    def test_focus_rows_become_units_in_use(self, tmp_path: Path) -> None:
        path = tmp_path / "focus.csv"
        rows = [
            "2026-01-05T00:00:00Z,2026-01-05T01:00:00Z,us-east-1,p4d.24xlarge,1.5,Hours,Usage",
            "2026-01-05T00:00:00Z,2026-01-05T01:00:00Z,us-east-1,p4d.24xlarge,2,Hours,Usage",
            "2026-01-05T01:00:00Z,2026-01-05T02:00:00Z,us-east-1,p4d.24xlarge,1,Hours,Usage",
            "2026-01-05T01:00:00Z,2026-01-05T02:00:00Z,eu-west-1,p4d.24xlarge,9,Hours,Usage",
            "2026-01-05T01:00:00Z,2026-01-05T02:00:00Z,us-east-1,p4d.24xlarge,9,Hours,Purchase",
        ]
        path.write_text("\n".join([FOCUS, *rows, ""]))
        history = read_history(path, POOLS)
        assert history.demand[:, 0].tolist() == [3.5, 1.0]
        assert history.notes == ("1 usage rows of the history belong to no pool and are left out",)

    def test_focus_days_are_spread_and_said_to_be(self, tmp_path: Path) -> None:
        path = tmp_path / "focus.csv"
        row = "2026-01-05T00:00:00Z,2026-01-06T00:00:00Z,us-east-1,g5.xlarge,48,Hours,Usage"
        path.write_text(f"{FOCUS}\n{row}\n")
        history = read_history(path, POOLS)
        assert history.demand[:, 1].tolist() == [2.0] * 24
        assert "hourly peaks are not seen" in history.notes[0]

    def test_focus_types_stand_in_sku_price_details_and_unused_commitments_are_no_use(
        self, tmp_path: Path
    ) -> None:
        header = "ChargePeriodStart,ChargePeriodEnd,RegionId,SkuPriceDetails,PricingQuantity,CommitmentDiscountStatus"
        period = "2026-01-05T00:00:00Z,2026-01-05T01:00:00Z,us-east-1"
        details = '"{""InstanceType"": ""g5.xlarge""}"'
        path = tmp_path / "focus.csv"
        path.write_text(f"{header}\n{period},{details},4,Used\n{period},{details},3,Unused\n")
        assert read_history(path, POOLS).demand.tolist() == [[0.0, 4.0]]

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("2026-01-05,2026-01-05,us-east-1,g5.xlarge,1,Hours,Usage", ":2: ChargePeriodEnd: is not after"),
            ("x,2026-01-05,us-east-1,g5.xlarge,1,Hours,Usage", ":2: ChargePeriodStart: must be a moment"),
            ("2026-01-05,2026-01-06,us-east-1,g5.xlarge,1,GB,Usage", ":2: ConsumedUnit: must be hours"),
            (
                "2026-01-05,2026-01-06,us-east-1,g5.xlarge,many,Hours,Usage",
                ":2: ConsumedQuantity: must be a number",
            ),
            (
                "2026-01-05,2026-01-06,eu-west-1,g5.xlarge,1,Hours,Usage",
                "no usage row belongs to a pool; 1 belong",
            ),
        ],
    )
    def test_bad_focus_cells_are_named(self, tmp_path: Path, row: str, message: str) -> None:
        path = tmp_path / "focus.csv"
        path.write_text(f"{FOCUS}\n{row}\n")
        with pytest.raises(InputError, match=message):
            read_history(path, POOLS)


class TestFutures:
    """Drawing and reading scenarios."""

    def history(self, tmp_path: Path, days: int = 28) -> Any:
        path = tmp_path / "h.csv"
        rows = [f"{hour},a,{hour % 24 + 100 * (hour // 24 % 7)}" for hour in range(24 * days)]
        path.write_text("\n".join(["hour,pool,instances", *rows, ""]))
        return read_history(path, (POOLS[0],))

    @pytest.mark.parametrize("block", [24, 168])
    def test_hours_keep_their_place_in_the_day_and_the_week(self, tmp_path: Path, block: int) -> None:
        asked = question(
            pools=[{"name": "a", "provider": "x", "region": "r", "prices": {"on_demand": 1.0}}],
            demand={"file": "h.csv"},
            scenarios={"count": 2, "hours_per_year": 500, "block_hours": block},
        )
        futures = draw_futures(asked, self.history(tmp_path), 1)
        first = date(2027, 1, 1).weekday()
        for future in futures.blocks:
            units = future.demand[:, 0].astype(int)
            assert (units % 100 == future.hour % 24).all()
            weekday = (first + future.hour // 24) % 7
            drawn = units // 100
            assert ((drawn == weekday) if block == 168 else ((drawn >= 5) == (weekday >= 5))).all()
            assert future.weight.sum() == pytest.approx(8760)

    def test_draws_repeat_and_more_scenarios_leave_the_first_as_they_were(self, tmp_path: Path) -> None:
        history = self.history(tmp_path)
        pools = [{"name": "a", "provider": "x", "region": "r", "prices": {"on_demand": 1.0}}]
        few, many = (
            draw_futures(
                question(pools=pools, demand={"file": "h"}, scenarios={"count": n, "hours_per_year": 50}),
                history,
                2,
            )
            for n in (2, 5)
        )
        for one, two in zip(few.blocks, many.blocks, strict=False):
            assert (one.demand == two.demand).all()
        assert not (many.blocks[0].demand == many.blocks[2].demand).all()

    def test_growth_is_within_its_bounds_and_compounds(self, tmp_path: Path) -> None:
        pools = [{"name": "a", "provider": "x", "region": "r", "prices": {"on_demand": 1.0}}]
        path = tmp_path / "h.csv"
        path.write_text("hour,pool,instances\n" + "\n".join(f"{h},a,100" for h in range(168)) + "\n")
        growth = {"low": 1.2, "likely": 1.3, "high": 1.5}
        asked = question(
            pools=pools, demand={"file": "h"}, scenarios={"count": 40, "hours_per_year": 24, "growth": growth}
        )
        futures = draw_futures(asked, read_history(path, (POOLS[0],)), 2)
        for future in futures.blocks:
            factor = (future.demand[:, 0] / 100) ** (8760 / np.maximum(future.hour, 1))
            assert ((factor[future.hour > 2000] > 1.199) & (factor[future.hour > 2000] < 1.501)).all()

    def test_a_history_shorter_than_a_block_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"6 whole days.*block_hours: 24"):
            draw_futures(question(), self.history(tmp_path, 6), 1)

    def test_plans_happen_as_often_as_they_are_likely(self) -> None:
        plan = {"pool": "a", "instances": 4, "start": "2027-02-01", "end": "2027-02-28", "probability": 0.5}
        asked = question(demand={"planned": [plan]}, scenarios={"count": 200, "hours_per_year": 300})
        futures = draw_futures(asked, None, 1)
        hits = 0
        for future in futures.blocks:
            inside = (future.hour >= 31 * 24) & (future.hour < 59 * 24)
            assert not future.demand[~inside].any()
            hits += bool(future.demand.any())
        assert 70 < hits < 130

    def test_a_plan_in_other_words_leaves_all_draws_as_they_are(self, tmp_path: Path) -> None:
        self.history(tmp_path)
        history = read_history(tmp_path / "h.csv", POOLS)
        pools = [
            {"name": name, "provider": "x", "region": "r", "prices": {"on_demand": 1.0}} for name in "ab"
        ]
        whole = {"pool": "a", "instances": 6, "start": "2027-03-01", "end": "2028-02-29"}
        halves = [whole | {"instances": 2}, whole | {"instances": 4}]
        parts = [whole | {"end": "2027-05-31"}, whole | {"start": "2027-06-01"}]
        risky = {"pool": "b", "instances": 9, "start": "2027-07-01", "end": "2027-08-31", "probability": 0.5}

        def drawn(plans: list[dict[str, Any]], past: Any = history) -> list[Any]:
            asked = question(
                pools=pools, demand={"planned": plans}, scenarios={"count": 12, "hours_per_year": 60}
            )
            return [(one.hour.tolist(), one.demand) for one in draw_futures(asked, past, 2).blocks]

        once = drawn([whole, risky])
        assert sum(bool(demand[:, 1].any()) for _, demand in once) not in (0, len(once))
        for plans in ([risky, whole], [*halves, risky], [parts[1], risky, parts[0]]):
            for (hours, demand), (same_hours, same) in zip(once, drawn(plans), strict=True):
                assert hours == same_hours
                assert (demand == same).all()
        for plans, past in (
            ([], history),
            ([whole, risky], None),
        ):  # the hours are those of the history alone
            assert [hours for hours, _ in drawn(plans, past)] == [hours for hours, _ in once]

    def test_given_scenarios_keep_their_probabilities(self, tmp_path: Path) -> None:
        path = tmp_path / "s.csv"
        path.write_text("scenario,hour,pool,instances,probability\nlow,0,a,1,1\nlow,1,a,2,1\nhigh,0,b,5,3\n")
        futures = read_futures(path, POOLS, date(2027, 1, 1), 2)
        assert futures.names == ("low", "high")
        assert futures.probability.tolist() == [0.25, 0.75]
        assert [(block.scenario, block.year) for block in futures.blocks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert futures.blocks[1].demand[:, 0].tolist() == [1, 2]
        assert "like the last year given" in futures.notes[0]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("scenario,hour,pool\n", "no column 'instances'"),
            ("scenario,hour,pool,instances\n", "has no scenarios"),
            ("scenario,hour,pool,instances\ns,0,z,1\n", ":2: pool: no pool is called 'z'"),
            ("scenario,hour,pool,instances\ns,99999,a,1\n", ":2: hour: is outside the horizon"),
            ("scenario,hour,pool,instances\ns,0,a,1\ns,0,a,1\n", ":3: hour: is already listed above"),
            ("scenario,hour,pool,instances,probability\ns,0,a,1,1\ns,1,a,1,2\n", ":3: probability: differs"),
            (
                "scenario,hour,pool,instances,probability\ns,0,a,1,1\nt,1,a,1,\n",
                "some scenarios have a probability",
            ),
            ("scenario,hour,pool,instances,probability\ns,0,a,1,0\n", "sum to 0"),
        ],
    )
    def test_bad_scenarios_are_named(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "s.csv"
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_futures(path, POOLS, date(2027, 1, 1), 1)


class TestModel:
    """What the columns stand for."""

    def test_renewals_begin_in_later_years_and_cover_them_only(self) -> None:
        made = built(question())
        periods = {
            item.key: column.periods for item, column in zip(made.buyable, made.model.columns, strict=True)
        }
        assert periods["reserved_3y/a/2027-01-01"] == (0, 1, 2)
        assert [periods[f"reserved_1y/a/{year}-01-01"] for year in (2027, 2028, 2029)] == [(0,), (1,), (2,)]
        assert all(item.expires > item.begins for item in made.buyable)
        assert {f"{item.expires}" for item in made.buyable if item.option == "reserved_3y"} == {"2029-12-31"}

    def test_no_pool_without_demand_can_be_reserved(self) -> None:
        assert {name for item in built(question()).buyable for name in item.serves} == {"a"}

    def test_a_term_beyond_the_horizon_needs_a_tail_value(self) -> None:
        without = built(question(horizon_years=1))
        assert {item.option for item in without.buyable} == {"reserved_1y"}
        assert "reserved_3y is left out" in without.notes[0]
        costs = {}
        for tail in (0.0, 0.5, 1.0):
            made = built(question(horizon_years=1, tail_value=tail))
            costs[tail] = next(c.cost_usd for c in made.model.columns if "3y" in str(c.key))
        assert costs == pytest.approx({0.0: 3 * 4.0 * 8760, 0.5: 2 * 4.0 * 8760, 1.0: 4.0 * 8760})

    def test_owned_reservations_come_off_until_they_end(self) -> None:
        owned = {"purchase_option": "reserved_1y", "pool": "a", "instances": 2, "expires": "2027-03-31"}
        made = built(question(commitments=[owned]))
        demand = np.concatenate([block.demand for block in made.model.hours if block.scenario == 0])
        hours = np.concatenate([future.hour for future in made.futures.blocks if future.scenario == 0])
        before = hours < 90 * 24
        assert before.any()
        assert (demand[before, 0] == 3).all()
        assert (demand[~before, 0] == 5).all()

    def test_savings_plans_at_a_constant_ratio_share_one_capacity(self) -> None:
        prices = {"on_demand": 10.0, "savings_plan_1y": 7.0, "savings_plan_3y": 5.04}
        pools = [{"name": name, "provider": "x", "region": "r", "prices": prices} for name in "ab"]
        pools[1] = pools[1] | {"prices": {key: value / 2 for key, value in prices.items()}}
        made = built(question(pools=pools))
        assert made.model.n_plans == 1
        three = next(c for c in made.model.columns if "savings_plan_3y" in str(c.key))
        assert three.capacity == pytest.approx(7.0 / 5.04)
        pools[1]["prices"] = {"on_demand": 5.0, "savings_plan_1y": 3.5, "savings_plan_3y": 2.6}
        assert built(question(pools=pools)).model.n_plans == 2

    def test_three_different_plans_over_one_pool_are_refused(self) -> None:
        options = ("on_demand", "savings_plan_1y", "savings_plan_3y", "cud_1y")
        usd = {"a": (10.0, 7.0, 5.0, 6.0), "b": (10.0, 6.0, 4.5, 5.0)}
        pools = [
            {"name": name, "provider": "x", "region": "r", "prices": dict(zip(options, row, strict=True))}
            for name, row in usd.items()
        ]
        asked = question(pools=pools)
        prices = pool_prices(None, asked.pools, "q.yaml")
        assert built(asked).model.n_plans == 2  # pools of no known family share no committed use
        family = [replace(price, family="f") for price in prices]
        with pytest.raises(
            InputError, match=r"3 savings plans of different rates.*take some out of 'options.allow'"
        ):
            build_model(asked, family, draw_futures(asked, None, 3), 3)

    def test_less_demand_scales_all_pools(self) -> None:
        full, half = built(question()), built(question(), demand_factor=0.5)
        assert (half.gross[0] == full.gross[0] / 2).all()

    def test_a_pool_without_on_demand_price_is_refused(self) -> None:
        asked = question(pools=[{"name": "a", "provider": "x", "region": "r", "instance_type": "t"}])
        with pytest.raises(InputError, match="pool a: no on-demand price of t in x/r"):
            pool_prices(None, asked.pools, "q.yaml")

    def test_spot_without_a_price_is_refused(self) -> None:
        asked = question(
            pools=[
                {"name": "a", "provider": "x", "region": "r", "prices": {"on_demand": 1.0}, "spot_share": 0.5}
            ]
        )
        with pytest.raises(InputError, match="pool a: 'spot_share' is set"):
            pool_prices(None, asked.pools, "q.yaml")

    def test_an_owned_plan_without_rates_is_refused(self) -> None:
        owned = {
            "purchase_option": "savings_plan_1y",
            "provider": "x",
            "usd_per_hour": 2.0,
            "expires": "2027-03-31",
        }
        with pytest.raises(InputError, match="no pool of x has a price for savings_plan_1y"):
            built(question(commitments=[owned]))

    def test_certain_demand_is_bought_whole_at_the_longest_term(self, tmp_path: Path) -> None:
        answer = advise(loaded(question(), tmp_path), None).answer
        (line,) = answer.lines
        assert (line.option, int(line.units)) == ("reserved_3y", 5)
        assert line.utilisation_ratio == pytest.approx(1.0)
        assert answer.plan.coverage_ratio == pytest.approx(1.0)
        assert answer.plan.expected_usd == pytest.approx(5 * 4.0 * 8760 * 3)
        assert answer.nothing.expected_usd == pytest.approx(5 * 10.0 * 8760 * 3)
        assert answer.regret is not None
        assert answer.regret.mean_ratio == pytest.approx(0.0, abs=2e-3)
        assert [level.savings_usd > 0 for level in answer.falls] == [True, True]
        assert answer.falls[1].utilisation_ratio == pytest.approx(0.5)

    def test_an_upfront_limit_that_binds_is_said(self, tmp_path: Path) -> None:
        pools = [
            {
                "name": "a", "provider": "x", "region": "r", "prices": {"on_demand": 10.0, "reserved_1y": 4.0},
                "upfront_usd": {"reserved_1y": 1000.0},
            }
        ]  # fmt: skip
        answer = advise(
            loaded(question(pools=pools, options={"upfront_limit_usd": 3500.0}), tmp_path), None
        ).answer
        (line,) = answer.lines
        assert (int(line.units), float(line.upfront_usd)) == (3, 3000.0)
        assert "the upfront limit of $3,500.00 leaves no room for one more unit" in answer.notes
        free = advise(loaded(question(pools=pools), tmp_path), None).answer
        assert int(free.lines[0].units) == 5
        assert not any("upfront" in note for note in free.notes)

    def test_ratios_are_ratios_of_sums(self, tmp_path: Path) -> None:
        asked = question(demand={"planned": [
            {"pool": "a", "instances": 8, "start": "2027-01-01", "end": "2028-12-31"},
            {"pool": "b", "instances": 3, "start": "2027-01-01", "end": "2029-12-31"},
        ]})  # fmt: skip
        answer = advise(loaded(asked, tmp_path), None).answer
        paid = sum(float(line.total_usd) for line in answer.lines)
        used = sum(float(line.total_usd) * (line.utilisation_ratio or 0) for line in answer.lines)
        assert answer.plan.utilisation_ratio == pytest.approx(
            used / paid, rel=2e-3
        )  # real years have leap days


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\nname: x\nstart: 2027-01-01\npool: []\n", r"unknown key 'pool' \(did you mean 'pools'"),
        ("version: 1\nname: x\nstart: soon\npools: []\n", r"q.yaml:3:8: start: is not a date"),
        ("[]\n", "must be a mapping"),
        (
            "version: 1\nname: x\nstart: 2027-01-01\npools:\n- {name: a, provider: p, region: r}\n",
            r"pools\[0\]: give 'instance_type'",
        ),
        (
            HEAD + "demand: {planned: [{pool: aa, instances: 1, start: 2027-01-01, end: 2027-02-01}]}\n"
            "commitments:\n- {purchase_option: savings_plan_1y, provider: q, usd_per_hour: 1, expires: 2027-01-01}\n",
            r"(?s)q.yaml:6:.*no pool is called 'aa'.*did you mean 'a'.*q.yaml:8:.*no pool is of provider 'q'",
        ),
        (
            HEAD,
            "give a history",
        ),
        (
            HEAD + "demand: {file: h.csv}\nscenarios: {growth: {low: 2}}\n",
            "must rise in this order",
        ),
        (
            HEAD + "demand: {file: h.csv}\nscenarios: {growth: {high: 1e15}}\n",
            "is not a forecast",
        ),
    ],
)
def test_faults_of_a_question_are_placed(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_commit(path)


def test_a_bill_in_parquet_is_a_history_too(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "focus.parquet"
    duckdb.connect().sql(
        "SELECT TIMESTAMP '2026-01-05' AS ChargePeriodStart, TIMESTAMP '2026-01-05 01:00:00' AS ChargePeriodEnd, "
        "'us-east-1' AS RegionId, '{\"InstanceType\": \"g5.xlarge\"}' AS SkuPriceDetails, 4.0 AS ConsumedQuantity, "
        "'Hours' AS ConsumedUnit, 'Usage' AS ChargeCategory, 1.0 AS BilledCost"
    ).write_parquet(str(path))
    assert read_history(path, POOLS).demand.tolist() == [[0.0, 4.0]]
