"""Portfolios and pipelines by their worst outcomes too: laws, every choice of small ones, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.candidates.plan_parts.scenarios import Draws, ScenarioCosts, centred, luck_of
from planner.inputs.pipeline_load import load_pipeline
from planner.inputs.portfolio_load import load_portfolio
from planner.pipelines.answer import plan_pipeline
from planner.plan.robust import Outcome, Robust, Terms
from planner.portfolios.answer import PortfolioAnswer, plan_portfolio
from planner.portfolios.copies import Copies
from planner.portfolios.robust import choose_robust
from planner.portfolios.solve import PortfolioOptions
from planner.portfolios.table import CandidateTable
from tests.conftest import Run

NOW = datetime(2026, 11, 24, tzinfo=UTC)
EXAMPLES = Path(__file__).parents[3] / "examples"
FIXTURES = EXAMPLES.parent / "tests" / "fixtures"
OPTIONS = PortfolioOptions(gap=1e-6)
pytestmark = pytest.mark.catalog("small")


def test_the_half_width_of_the_worst_mean_covers_four_of_five_estimates() -> None:
    terms, random = Terms(0.95, 0.5, 400, 1), np.random.default_rng(7)
    true = 2.0627128  # mean of the worst twentieth of a standard normal
    draws = random.standard_normal((600, terms.scenarios))
    inside = np.mean([abs(terms.worst(one) - true) <= terms.half_width(one) for one in draws])
    assert 0.72 <= inside <= 0.85
    assert terms.half_width(draws[0][:1]) == 0.0


def _job(name: str, regions: list[str], options: list[str]) -> dict[str, Any]:
    workload = yaml.safe_load((EXAMPLES / "stable-diffusion-finetune.yaml").read_text(encoding="utf-8"))
    workload["name"] = name
    limits = {"providers": ["aws"], "regions": regions, "purchase_options": options, "max_nodes": 2}
    workload["constraints"] = {**limits, "deadline": "5d"}
    return {"name": name, "inline": workload}


def _portfolio(folder: Path, **more: Any) -> Path:
    """Two jobs that share a quota, so that they cannot both take what is cheapest."""
    document = {
        "version": 1, "kind": "portfolio", "name": "two", "start": "2026-12-01",
        "jobs": [
            _job("one", ["us-east-1", "us-west-2"], ["on_demand", "spot"]),
            _job("two", ["us-east-2", "eu-west-1"], ["on_demand", "spot"]),
        ],
        **more,
    }  # fmt: skip
    path = folder / "jobs.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def _planned(path: Path, level: float | None = None) -> PortfolioAnswer:
    return plan_portfolio(
        load_portfolio(path), Options(now=NOW), OPTIONS, catalog=load_catalog, robust_level=level
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> PortfolioAnswer:
    return _planned(_portfolio(tmp_path_factory.mktemp("plain")))


def _picked(answer: PortfolioAnswer) -> list[int]:
    assert answer.result.picks is not None
    return answer.result.picks.tolist()


@pytest.mark.parametrize(
    "terms",
    [Terms(0.95, 0.5, 1), Terms(0.0, 0.9, 50), Terms(0.95, 0.0, 50)],
    ids=["one scenario", "level 0", "weight 0"],
)
def test_without_risk_the_choice_is_that_by_expected_cost(plain: PortfolioAnswer, terms: Terms) -> None:
    result, made = choose_robust(plain.gathered, plain.question, plain.result, terms, OPTIONS)
    assert result.picks is not None and result.picks.tolist() == _picked(plain)
    assert made.chosen.objective_usd == pytest.approx((plain.result.objective or 0) / 1e6, abs=1e-6)
    assert made.changed == 0


@pytest.mark.parametrize(("level", "weight"), [(0.5, 0.3), (0.9, 0.5), (0.95, 1.0)])
def test_the_choice_is_the_best_of_all(plain: PortfolioAnswer, level: float, weight: float) -> None:
    terms = Terms(level, weight, 60, seed=4)
    result, made = choose_robust(plain.gathered, plain.question, plain.result, terms, OPTIONS)
    table, costs = plain.question.table, ScenarioCosts(Draws(terms.scenarios, terms.seed))
    sources = plain.gathered.sources
    rows = [
        sorted(np.flatnonzero(table.job == job).tolist(), key=lambda at: int(table.cost_micro_usd[at]))[:40]
        for job in (0, 1)
    ]
    usd = {
        at: int(table.counted_micro_usd[at]) / 1e6 + costs.deviation(sources[int(table.source[at])], int(table.row[at]))
        for at in (*rows[0], *rows[1])
    }  # fmt: skip

    def objective(pair: tuple[int, ...]) -> float:
        both = np.sort(usd[pair[0]] + usd[pair[1]])[::-1]
        worst = float(both[: round(terms.scenarios * (1 - level))].mean())
        return (1 - weight) * float(both.mean()) + weight * worst

    best = min(objective(pair) for pair in product(*rows))
    assert made.chosen.objective_usd <= best * (1 + 1e-6)
    assert made.bound_usd <= best * (1 + 1e-6)
    assert made.chosen.worst_usd <= made.plain.worst_usd + 1e-9
    assert made.chosen.expected_usd >= made.plain.expected_usd - 1e-9
    assert result.picks is not None and not plain.question.numbers.faults(result.picks)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> PortfolioAnswer:
    """Three copies of one job beside two of another, within a quota."""
    path = _portfolio(tmp_path_factory.mktemp("copied"))
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["jobs"][0]["count"], document["jobs"][1]["count"] = 3, 2
    document["quota"] = [
        {"provider": "aws", "region": "*", "quota": "L-DB2E81BA", "unit": "vCPU", "limit": 8}
    ]
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return _planned(path)


@pytest.mark.parametrize("seed", [4, 5])
def test_a_model_of_counts_has_the_same_best_choice(
    copied: PortfolioAnswer, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    terms = Terms(0.9, 0.5, 20, seed=seed)
    result, made = choose_robust(copied.gathered, copied.question, copied.result, terms, OPTIONS)
    assert result.picks is not None and not copied.question.numbers.faults(result.picks)
    kept = np.arange(len(copied.question.table))
    monkeypatch.setattr(Copies, "__init__", _each_its_own)
    assert Copies(copied.question.table, copied.gathered.kinds, kept).leader.tolist() == [0, 1, 2, 3, 4]
    _, other = choose_robust(copied.gathered, copied.question, copied.result, terms, OPTIONS)
    assert made.chosen.objective_usd == pytest.approx(other.chosen.objective_usd, rel=1e-4)
    assert made.bound_usd <= other.chosen.objective_usd * (1 + 1e-9)
    assert other.bound_usd <= made.chosen.objective_usd * (1 + 1e-9)


_find_copies = Copies.__init__


def _each_its_own(self: Copies, table: CandidateTable, kinds: Sequence[int], keep: np.ndarray) -> None:
    _find_copies(self, table, range(len(kinds)), keep)


def test_copies_are_told_and_choices_come_back(copied: PortfolioAnswer) -> None:
    """Whichever copy does what, the point is the same, and its choice has the same candidates."""
    table, random = copied.question.table, np.random.default_rng(3)
    kept = np.sort(random.permutation(len(table) // 2) * 2)  # half of them: other halves for other copies
    copies = Copies(table, copied.gathered.kinds, np.arange(len(table)))
    assert copies.leader.tolist() == [0, 0, 0, 3, 3]
    assert set(Copies(table, copied.gathered.kinds, kept[1:]).leader.tolist()) >= {0, 1, 3}
    first = np.searchsorted(table.job, np.arange(6))
    for _ in range(20):
        picks = np.array([random.integers(first[job], first[job + 1]) for job in range(5)])
        point = copies.point(picks, np.arange(len(table)))
        assert sum(point.values()) == 5
        again = copies.picks(point, np.arange(len(table)))
        assert (table.job[again] == np.arange(5)).all()
        said = [sorted(zip(table.source[one], table.row[one], strict=True)) for one in (picks, again)]
        assert said[0] == said[1]


def test_scenarios_are_common_and_their_mean_is_the_expected_cost(plain: PortfolioAnswer) -> None:
    assert plain.result.picks is not None
    source, row = plain.gathered.sources[0], int(plain.question.table.row[plain.result.picks[0]])
    few, many = (ScenarioCosts(Draws(count, 3)).deviation(source, row) for count in (30, 3_000))
    assert abs(few.mean()) < 1e-9 and abs(many.mean()) < 1e-9
    assert np.array_equal(Draws(30, 3).normal("speed"), Draws(3_000, 3).normal("speed")[:30])
    assert not np.array_equal(Draws(30, 3).normal("speed"), Draws(30, 4).normal("speed"))
    assert np.quantile(many, 0.9) > 0 > np.quantile(many, 0.1)
    assert centred(np.asarray([7.0]), 5.0).tolist() == [0.0]


def test_candidates_share_the_luck_of_the_zones_that_they_share() -> None:
    """Whichever zone comes first, and whether the other candidate has more zones beside it."""
    a, b, far = (("aws", "p5", *place) for place in (("r", "ra"), ("r", "rb"), ("s", "sa")))
    draws = Draws(40_000, 5)

    def alike(one: Sequence[tuple[str, ...]], other: Sequence[tuple[str, ...]]) -> float:
        pair = [luck_of(places, 0.14, 0.43, draws) for places in (one, other)]
        assert [float(luck.std()) for luck in pair] == pytest.approx([1.0, 1.0], abs=0.02)
        return float((pair[0] * pair[1]).mean() - pair[0].mean() * pair[1].mean()) / float(
            pair[0].std() * pair[1].std()
        )

    assert alike([a], [a]) == pytest.approx(1.0)
    assert alike([a, far], [far, a]) == pytest.approx(1.0)
    assert alike([a], [b]) == pytest.approx(0.43, abs=0.02)
    assert alike([a], [far]) == pytest.approx(0.14, abs=0.02)
    # (1 + 0.43) / sqrt(2 + 2 x 0.43): half of the pair is the zone itself
    assert alike([a], [a, b]) == pytest.approx(1.43 / 2.86**0.5, abs=0.02)
    assert alike([a, far], [a]) == pytest.approx(alike([a, far], [far]), abs=0.02)
    other_kind = [("aws", "p4d", "r", "ra")]
    assert alike([a], other_kind) == pytest.approx(0.0, abs=0.02)


def test_the_answer_is_recomputed_and_forgeries_are_found(run_cli: Run, tmp_path: Path) -> None:
    question, target = _portfolio(tmp_path, risk={"weight": 0.6, "scenarios": 50}), tmp_path / "answer.json"
    assert run_cli("portfolio", str(question), "-o", "json", "--out", str(target)).code == 0
    assert run_cli("verify", str(target), "--workload", str(question)).code == 0
    answer = json.loads(target.read_text(encoding="utf-8"))
    assert answer["totals"]["counted_usd"] == pytest.approx(answer["risk"]["expected_usd"])
    assert len(answer["risk"]["scenario_usd"]) == 50
    told = answer["risk"]["worst_usd"]
    for change in (
        {"worst_usd": told * 0.99},
        {"relief_usd": 1e3},
        {"bound_usd": told * 2},
        {"weight_ratio": 0.5},
    ):
        forged = {**answer, "risk": {**answer["risk"], **change}}
        target.write_text(json.dumps(forged), encoding="utf-8")
        assert run_cli("verify", str(target), "--workload", str(question)).code == 5
    target.write_text(
        json.dumps({name: part for name, part in answer.items() if name != "risk"}), encoding="utf-8"
    )
    assert run_cli("verify", str(target), "--workload", str(question)).code == 5


def test_rolling_plans_and_frontiers_refuse_risk_by_name(run_cli: Run, tmp_path: Path) -> None:
    path = _portfolio(tmp_path, risk={"level": 0.9}, rolling={"every": "1d"})
    assert "risk" in run_cli("portfolio", str(path)).stderr
    path = _portfolio(tmp_path)
    for other in (("--rolling", "1d"), ("--frontier", "3")):
        done = run_cli("portfolio", str(path), "--robust", "95%", *other)
        assert done.code == 2 and "--robust" in done.stderr


def test_a_pipeline_with_risk_keeps_its_deadline_and_lowers_the_worst() -> None:
    loaded, catalog = load_pipeline(FIXTURES / "pipeline-with-one-workload.yaml"), load_catalog()
    plain, robust = (
        plan_pipeline(loaded, Options(now=NOW, time_limit_s=600), catalog=catalog, robust_level=level)
        for level in (None, 0.95)
    )
    made = robust.robust
    assert made is not None and plain.total_usd is not None and robust.total_usd is not None
    assert robust.deadline_hours is not None and robust.end_hours <= robust.deadline_hours * (1 + 1e-6)
    assert made.chosen.worst_usd <= made.plain.worst_usd
    assert made.plain.expected_usd == pytest.approx(float(plain.total_usd))
    assert made.chosen.expected_usd == pytest.approx(float(robust.total_usd))
    assert float(made.scenario_usd.mean()) == pytest.approx(float(robust.total_usd))
    assert made.bound_usd <= made.chosen.objective_usd and made.gap <= 1.1e-3
    level_0 = plan_pipeline(loaded, Options(now=NOW, time_limit_s=600), catalog=catalog, robust_level=0.0)
    assert level_0.total_usd == plain.total_usd
    assert [stage.way.place for stage in level_0.stages] == [stage.way.place for stage in plain.stages]


@pytest.mark.parametrize(("fresh_usd", "kept"), [(9.0, True), (11.0, False)])
def test_what_only_its_own_scenarios_prefer_is_refused(fresh_usd: float, kept: bool) -> None:
    """The choice is 1 cheaper in the scenarios of the search; fresh ones decide whether it is taken."""
    chosen, plain, fresh = Outcome(5.0, 8.0, 9.0), Outcome(4.0, 9.0, 10.0), Outcome(5.0, 8.0, fresh_usd)
    costs = np.asarray([4.0, 6.0])
    made = Robust(
        Terms(0.5, 0.5, 2), chosen, plain, fresh, plain, costs, costs - 1.0, 8.5, 3, 3, 2, "milp", 0.1
    )
    assert made.confirmed is kept
    stays = made.as_plain()
    assert (stays.chosen, stays.changed, stays.refused, stays.confirmed) == (plain, 0, 2, True)
    assert stays.values()["scenario_usd"] == [3.0, 5.0] and stays.gap == pytest.approx(0.15)
    assert stays.values()["price_usd"] == stays.values()["relief_usd"] == 0
    said = stays.sentence("job", OPTIONS.gap)
    assert "2 jobs otherwise" in said and "fresh" in said
