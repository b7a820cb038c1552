"""The Python API answers as the commands do: every example, and every option that both have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import planner
from benchmarks.fuzz import SMALLER, example_with
from planner.asked.given import options_on
from planner.asked.options import Options
from planner.errors import CatalogError, InputError
from planner.inputs.load import LoadedWorkload, load_workload
from planner.inputs.schema import Workload
from planner.portfolios import answer as portfolios
from planner.workloads import answer as answers
from planner.workloads.answer import Answer
from tests.cli.test_screen import EXAMPLES as PLANNED
from tests.conftest import ROOT, Run

EXAMPLES = ROOT / "examples"
DAY = "2026-11-20"
AS_OF = ("--as-of", DAY)
pytestmark = pytest.mark.catalog("small")
# of the run, not of the answer
OF_THE_RUN = {"created_at", "seconds", "planner_version"}


def plain(value: Any) -> Any:
    """An answer without what differs from run to run."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in OF_THE_RUN}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def equal(made: Any, run_cli: Run, *args: str, codes: tuple[int, ...] = (0,)) -> None:
    """Compare an answer with the JSON of a command."""
    done = run_cli(*args, "-o", "json")
    assert done.code in codes, done.stderr
    printed = plain(json.loads(done.stdout))
    own = plain(json.loads(made.render("json")))
    assert own.keys() == printed.keys()
    for key in printed:
        assert own[key] == printed[key], key


def example(name: str) -> str:
    return str(EXAMPLES / f"{name}.yaml")


@pytest.fixture(scope="module")
def any_answer() -> Answer:
    return answers.optimize(load_workload(Path(example("bert-large"))), options_on(DAY))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, any_answer: Answer) -> list[tuple[Workload, Options]]:
    """What `optimize` is asked, whoever asks: the same question has the same answer, which is worked out once."""
    seen: list[tuple[Workload, Options]] = []

    def noted(loaded: LoadedWorkload, options: Options, **_: Any) -> Answer:
        seen.append((loaded.workload, options))
        return any_answer

    monkeypatch.setattr(answers, "optimize", noted)
    return seen


@pytest.mark.parametrize("name", PLANNED)
def test_the_same_is_asked_of_every_example(
    name: str, run_cli: Run, asked: list[tuple[Workload, Options]]
) -> None:
    planner.optimize(example(name), as_of=DAY)
    assert run_cli("optimize", example(name), *AS_OF).code == 0
    assert asked[0] == asked[1]


@pytest.mark.parametrize("name", ["embed-images-fleet", "images-100gb", "owned-top-up"])
def test_the_plan_is_the_same(name: str, run_cli: Run) -> None:
    equal(planner.optimize(example(name), as_of=DAY), run_cli, "optimize", example(name), *AS_OF)


def of_set(key: str, value: object) -> tuple[dict[str, Any], tuple[str, ...]]:
    return {"settings": {key: value}}, ("--set", f"{key}={json.dumps(value)}")


OPTIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "objective time": ({"objective": "time"}, ("--objective", "time")),
    "objective carbon": ({"objective": "carbon"}, ("--objective", "carbon")),
    "results": ({"max_results": 2}, ("--max-results", "2")),
    "flagged": ({"allow_flagged": True}, ("--allow-flagged",)),
    "derived": ({"allow_derived": True}, ("--allow-derived",)),
    "quote": ({"quote": 0.9}, ("--quote", "90%")),
    "quoted prices": of_set("preferences.prices", "quoted"),
    "firm prices": of_set("preferences.prices", "firm"),
    "regions": of_set("constraints.regions", ["us-*"]),
    "replays": ({"replays": 50}, ("--replays", "50")),
    "uncalibrated": ({"calibrated": False}, ("--no-calibration",)),
    "evidence": ({"spot_evidence": [__file__]}, ("--spot-evidence", __file__)),
    "solver": ({"solver": "both"}, ("--solver", "both")),
    "gap and backend": ({"gap": 0.02, "backend": "highspy"}, ("--gap", "2%", "--backend", "highspy")),
    "time": ({"time_limit_s": 5.0}, ("--time-limit", "5s")),
    "age": ({"max_age_days": 30}, ("--max-age", "30d")),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_same_is_asked_with_every_option(
    name: str, run_cli: Run, asked: list[tuple[Workload, Options]]
) -> None:
    given, flags = OPTIONS[name]
    planner.optimize(example("bert-large"), as_of=DAY, **given)
    done = run_cli("optimize", example("bert-large"), *AS_OF, *flags)
    assert done.code == 0, done.stderr
    assert asked[0] == asked[1]
    plainly = planner.optimize(example("bert-large"), as_of=DAY)
    assert plainly and asked[2] != asked[0]  # the option does something


def test_the_most_of_a_budget(run_cli: Run, asked_once: Callable[[str], None]) -> None:
    asked_once("planner.workloads.best_within.best_within")
    made = planner.optimize(example("images-100gb"), as_of=DAY, best_within=100)
    equal(made, run_cli, "optimize", example("images-100gb"), *AS_OF, "--best-within", "100")


Question = tuple[Callable[[], Any], tuple[str, ...]]
QUESTIONS: dict[str, Question] = {
    "explain": (
        lambda: planner.explain(example("images-100gb"), as_of=DAY, draws=20, seed=7),
        ("explain", example("images-100gb"), *AS_OF, "--draws", "20", "--seed", "7"),
    ),
    "schedule": (lambda: planner.schedule(example("schedule")), ("schedule", example("schedule"))),
    "a schedule that has begun": (
        lambda: planner.schedule(example("schedule"), as_of="2026-12-02"),
        ("schedule", example("schedule"), "--as-of", "2026-12-02"),
    ),
    "serving": (
        lambda: planner.serve(example("serving"), as_of=DAY),
        ("serving", example("serving"), *AS_OF),
    ),
    "predicted serving": (
        lambda: planner.serve(example("serving-llama-8b"), as_of=DAY),
        ("serving", example("serving-llama-8b"), *AS_OF),
    ),
    "tco": (lambda: planner.tco(example("tco-2x4090"), as_of=DAY), ("tco", example("tco-2x4090"), *AS_OF)),
    "commitments": (
        lambda: planner.commit("commit.yaml", as_of=DAY, regret=False),
        ("commit", "commit.yaml", *AS_OF, "--no-regret"),
    ),
    "commitments of a bill": (
        lambda: planner.commit(bill=EXAMPLES / "focus", seed=3, as_of=DAY, regret=False),
        ("commit", "--from-focus", str(EXAMPLES / "focus"), "--seed", "3", *AS_OF, "--no-regret"),
    ),
    "budget": (
        lambda: planner.budget(example("budgets"), daily=EXAMPLES / "daily-costs.csv"),
        ("budget", example("budgets"), "--daily", str(EXAMPLES / "daily-costs.csv")),
    ),
    "forecast": (
        lambda: planner.forecast(daily=EXAMPLES / "daily-costs.csv", currency="USD"),
        ("forecast", "--daily", str(EXAMPLES / "daily-costs.csv"), "--currency", "USD"),
    ),
}  # fmt: skip


# a command that asks the same of these as the API has the same answer; one that asks anything else has its own
SEARCHES = (
    "planner.schedules.answer.plan_schedule", "planner.workloads.explain.explain",
    "planner.serving.answer.plan_serving", "planner.finops.forecast.answer.forecast_scopes",
    "planner.commitments.from_bill.question_from_bill", "planner.commitments.advise.advise",
)  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_other_question(
    name: str,
    run_cli: Run,
    asked_once: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "commit.yaml").write_text(example_with("commit", SMALLER["commit"]), encoding="utf-8")
    (tmp_path / "commit-usage.csv").symlink_to(EXAMPLES / "commit-usage.csv")
    monkeypatch.chdir(tmp_path)
    for search in SEARCHES:
        asked_once(search)
    ask, args = QUESTIONS[name]
    equal(ask(), run_cli, *args, codes=(0, 3, 5, 6))


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ({}, ()),
        ({"robust": 0.9}, ("--robust", "90%")),
        (
            {"mode": "fast", "gap": 0.01, "time_limit_s": 9.0},
            ("--mode", "fast", "--gap", "1%", "--time-limit", "9s"),
        ),
    ],
)
def test_the_same_is_asked_of_a_portfolio(
    given: dict[str, Any], flags: tuple[str, ...], run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def noted(loaded: Any, planning: Any, options: Any, *, robust_level: Any = None, **_: Any) -> None:
        seen.append((loaded.sha256, planning, options, robust_level))
        raise InputError("asked")

    monkeypatch.setattr(portfolios, "plan_portfolio", noted)
    with pytest.raises(InputError, match="asked"):
        planner.portfolio(example("portfolio"), as_of=DAY, **given)
    assert run_cli("portfolio", example("portfolio"), *AS_OF, *flags).code == 2
    assert seen[0] == seen[1]


def test_budgets_and_forecasts_with_plans(
    run_cli: Run, tmp_path: Path, asked_once: Callable[[str], None]
) -> None:
    asked_once("planner.finops.forecast.answer.forecast_scopes")
    plan = tmp_path / "plan.json"
    planner.optimize(example("images-100gb"), as_of=DAY).save(plan)
    daily = str(EXAMPLES / "daily-costs.csv")
    printed = run_cli("forecast", "--daily", daily, "--currency", "USD", "--plans", str(plan), "-o", "json")
    assert printed.code == 0, printed.stderr
    scopes = json.loads(printed.stdout)
    own = planner.forecast(daily=daily, currency="USD", plans=[str(plan)])
    assert plain(json.loads(own.render("json"))) == plain(scopes)
    without = planner.forecast(daily=daily, currency="USD")
    assert own.to_dict() != without.to_dict()
    budgets = example("budgets")
    equal(
        planner.budget(budgets, daily=daily, plans=[str(plan)]), run_cli,
        *("budget", budgets, "--daily", daily, "--plans", str(plan)), codes=(0, 5),
    )  # fmt: skip


@pytest.mark.catalog("whole")
def test_an_estimate_as_of_a_day_is_that_of_its_prices(run_cli: Run) -> None:
    """Of a day before the bundled prices there are none, in either."""
    made = planner.estimate(example("bert-large"), "p4d.24xlarge", as_of=DAY)
    asked = ("estimate", example("bert-large"), "--instance-type", "p4d.24xlarge")
    equal(made, run_cli, *asked, *AS_OF)
    with pytest.raises(CatalogError, match="2021-01-01"):
        planner.estimate(example("bert-large"), "p4d.24xlarge", as_of="2021-01-01")
    assert run_cli(*asked, "--as-of", "2021-01-01").code == 4
