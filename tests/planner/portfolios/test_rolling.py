"""Rolling plans: what arrives, what is held at every moment, what preemption costs, and what a plan may know."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.quarter_policies import CheapestFirst, FairShare
from planner.asked.options import Options
from planner.errors import InputError, PlannerError
from planner.inputs.load import load_workload
from planner.inputs.portfolio_load import load_portfolio
from planner.portfolios.answer import plan_portfolio
from planner.portfolios.rolling.answer import figures_of, owned_usd, plan_rolling
from planner.portfolios.rolling.course import Course, Outcome, Policy, Start, View
from planner.portfolios.rolling.demand import Demand
from planner.portfolios.rolling.replan import RollingPolicy
from planner.portfolios.solve import PortfolioOptions
from planner.workloads.answer import optimize
from tests.conftest import ROOT, Run

NOW = Options(datetime(2026, 11, 20, tzinfo=UTC), as_of=date(2026, 11, 20))
EXAMPLE = ROOT / "examples" / "rolling.yaml"
NODES, SHARES, QUOTA = 6, {"red": 0.5, "blue": 1.0}, {"red": 4, "blue": 99}
HEAD = f"""version: 1
kind: portfolio
name: stream
start: 2026-12-01
rolling: {{every: 4h, hours_margin: 0.2}}
commitments:
  - {{provider: onprem, region: rack, instance_type: box, purchase_option: owned, nodes: {NODES}, usd_per_node_hour: 2}}
quota: [{{provider: aws, region: us-east-1, quota: P, unit: instances, limit: 8}}]
teams:
  red:
    share: {SHARES["red"]}
    quota: [{{provider: aws, region: "*", quota: P, unit: instances, limit: {QUOTA["red"]}}}]
  blue: {{}}
jobs:
"""
POLICIES: dict[str, Callable[[], Policy]] = {
    "rolling": RollingPolicy, "fair share": lambda: FairShare(SHARES), "cheapest first": CheapestFirst,
}  # fmt: skip


def stream(seed: int, jobs: int = 14) -> list[tuple[float, str]]:
    """Jobs with their submission (hours), in its order: wide and narrow ways on the rack, and one or two to buy."""
    draw = np.random.default_rng([seed, 5])
    out = []
    for at, submitted in enumerate(np.sort(draw.uniform(0, 60, jobs)).round(2).tolist()):
        hours, wide = float(draw.integers(3, 20)), int(draw.integers(1, 5))
        lines = [
            f"  - name: job-{at}",
            f"    submitted: {round(submitted * 60)}m",
            f"    team: {draw.choice(['red', 'blue'])}",
            f"    priority: {int(draw.integers(0, 3))}",
            f"    deadline: {int(hours + draw.integers(2, 50))}h",
            f"    checkpoint_hours: {draw.choice([0.5, 1, 2])}",
            "    candidates:",
        ]
        owned = "provider: onprem, region: rack, instance_type: box, purchase_option: owned, cost_usd: 0.01"
        cloud = "provider: aws, region: us-east-1, instance_type: p4d.24xlarge, family: P"
        lines += [
            f"      - {{{owned}, nodes: {nodes}, hours: {round(hours * wide / nodes, 3)}}}"
            for nodes in sorted({wide, max(wide // 2, 1)})
        ]
        for nodes in range(1, int(draw.integers(2, 4))):
            usd = int(hours * draw.integers(10, 40))
            lines.append(
                f"      - {{{cloud}, nodes: {nodes}, hours: {round(hours / nodes, 3)}, cost_usd: {usd}}}"
            )
        out.append((round(submitted * 60) / 60, "\n".join(lines)))
    return out


def demand_of(folder: Path, jobs: Sequence[str]) -> Demand:
    file = folder / "stream.yaml"
    file.write_text(HEAD + "\n".join(jobs) + "\n")
    loaded = load_portfolio(file)
    assert loaded.portfolio.rolling is not None
    return Demand(loaded, _no_catalog, NOW, loaded.portfolio.rolling.every)


def _no_catalog() -> Any:
    raise AssertionError("every candidate is sized: no prices are needed")


def held_at(outcome: Outcome, moment: float, option: str, team: str | None = None) -> int:
    """Instances of a purchase option in use just after a moment."""
    total = 0
    for task in outcome.tasks:
        for stint in task.stints:
            ways = stint.option.table
            if stint.begin <= moment < stint.end and team in (None, task.job.team):
                total += (
                    int(ways.nodes[stint.option.row, 0]) if stint.option.owned == (option == "owned") else 0
                )
    return total


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_jobs_run_after_they_arrive_within_what_is_there_until_their_work_is_done(
    tmp_path: Path, seed: int, policy: str
) -> None:
    demand = demand_of(tmp_path, [text for _, text in stream(seed)])
    factors = np.exp(np.random.default_rng(seed).normal(0, 0.3, len(demand.jobs)))
    outcome = Course(demand, POLICIES[policy](), factors.tolist()).play()
    assert all(task.end is not None for task in outcome.tasks)
    for task, factor in zip(outcome.tasks, factors.tolist(), strict=True):
        ends = [task.job.submitted, *(stint.end for stint in task.stints)]
        assert all(stint.begin >= end for stint, end in zip(task.stints, ends, strict=False))
        done = 0.0  # of the real work, what checkpoints and the last run did
        for number, stint in enumerate(task.stints):
            worked = stint.end - stint.begin - (task.job.restart_hours if number else 0.0)
            assert stint.preempted == (number < len(task.stints) - 1)
            kept = worked - stint.lost_hours if worked > 0 else 0.0
            if stint.preempted:
                assert kept % task.job.checkpoint_hours == pytest.approx(0.0, abs=1e-6)
                assert 0 <= stint.lost_hours < task.job.checkpoint_hours
            done += kept / stint.option.hours
            share = (stint.end - stint.begin) / stint.option.hours
            assert stint.cost_micro_usd == pytest.approx(stint.option.cost_micro_usd * share, abs=1)
        assert done == pytest.approx(factor) or (done > factor and len(task.stints) > 1)
    for moment in {stint.begin for task in outcome.tasks for stint in task.stints}:
        assert held_at(outcome, moment, "owned") <= NODES
        assert held_at(outcome, moment, "owned", "red") <= NODES * SHARES["red"]
        assert held_at(outcome, moment, "bought") <= 8
        assert held_at(outcome, moment, "bought", "red") <= QUOTA["red"]


@pytest.mark.parametrize("seed", range(10, 14))
def test_what_is_decided_until_a_moment_knows_nothing_of_jobs_that_come_later(
    tmp_path: Path, seed: int
) -> None:
    jobs = stream(seed)
    until = jobs[8][0] + 1e-9

    def decisions(known: list[tuple[float, str]]) -> list[tuple[int, float, int, bool]]:
        demand = demand_of(tmp_path, [text for _, text in known])
        outcome = Course(demand, RollingPolicy()).play()
        return [
            (task.job.number, stint.begin, stint.option.row, stint.preempted and stint.end <= until)
            for task in outcome.tasks
            for stint in task.stints
            if stint.begin <= until
        ]

    whole = decisions(jobs)
    assert len(whole) >= 5
    assert whole == decisions([job for job in jobs if job[0] <= until])


def test_one_job_alone_costs_what_portfolio_and_optimize_say(tmp_path: Path) -> None:
    workload = ROOT / "examples" / "stable-diffusion-finetune.yaml"
    file = tmp_path / "one.yaml"
    text = f"version: 1\nkind: portfolio\nname: one\njobs: [{{name: only, workload: {workload}}}]\n"
    file.write_text(text)
    alone = optimize(load_workload(workload), NOW).plan
    together = plan_portfolio(load_portfolio(file), NOW, PortfolioOptions())
    rolling = plan_rolling(load_portfolio(file), NOW, timedelta(hours=6))
    usd = figures_of(rolling.demand, rolling.outcome.tasks).bought_usd
    assert together.result.picks is not None
    assert usd == pytest.approx(
        int(together.question.numbers.cost[together.result.picks].sum()) / 1e6, abs=1e-6
    )
    assert usd == pytest.approx(float(alone.total_usd), abs=0.005)


PAIR = """  - name: low
    team: blue
    deadline: 60h
    candidates:
      - {{provider: onprem, region: rack, instance_type: box, purchase_option: owned, nodes: 6, hours: 20, cost_usd: 1}}
  - name: high
    team: blue
    submitted: 5h
    priority: {priority}
    deadline: 9h
    candidates:
      - {{provider: onprem, region: rack, instance_type: box, purchase_option: owned, nodes: 6, hours: 4, cost_usd: 1}}
"""


def test_only_a_job_of_higher_priority_preempts_and_what_is_lost_is_done_again(tmp_path: Path) -> None:
    low, high = Course(demand := demand_of(tmp_path, [PAIR.format(priority=1)]), RollingPolicy()).play().tasks
    assert [stint.preempted for stint in low.stints] == [True, False]
    assert (high.stints[0].begin, high.end) == (8.0, 12.0)
    # begun at 0 and stopped at 8, all of it saved by the hour; then a quarter of an hour to restart, and 12 hours
    assert low.stints[1].begin == 12.0
    assert low.end == pytest.approx(12.0 + 0.25 + 12.0)
    figures = figures_of(demand, (low, high))
    assert (figures.preemptions, figures.late) == (1, 0)
    assert figures.lost_node_hours == pytest.approx(6 * 0.25)
    low, high = Course(demand_of(tmp_path, [PAIR.format(priority=0)]), RollingPolicy()).play().tasks
    assert [stint.preempted for stint in low.stints] == [False]
    assert high.stints[0].begin == 20.0


CHEAP = """  - name: cheap
    team: blue
    count: 2
    deadline: 60h
    {own}
    candidates:
      - {{provider: aws, region: us-east-1, instance_type: g5.xlarge, nodes: 1, hours: 20, cost_usd: 9.30}}
      - {{provider: aws, region: us-east-1, instance_type: p4d.24xlarge, nodes: 1, hours: 1, cost_usd: 17.16}}
"""


@pytest.mark.parametrize(("own", "usd"), [("", 9.30), ("delay_usd_per_hour: 1", 17.16)])
def test_waiting_decides_between_like_costs_unless_a_job_states_its_price(
    own: str, usd: float, tmp_path: Path
) -> None:
    """$0.50 an hour beside other jobs bought 19 hours sooner for twice the cost of a job of $9.30."""
    tasks = Course(demand_of(tmp_path, [CHEAP.format(own=own)]), RollingPolicy()).play().tasks
    assert [task.stints[0].cost_micro_usd / 1e6 for task in tasks] == pytest.approx([usd, usd])


def test_what_is_owned_is_paid_until_the_last_submission_and_then_as_it_is_used(tmp_path: Path) -> None:
    demand = demand_of(tmp_path, [PAIR.format(priority=0)])
    outcome = Course(demand, RollingPolicy()).play()
    # six boxes at $2 for 5 hours; then 15 hours of the first job and 4 of the second
    assert owned_usd(demand, outcome) == pytest.approx(6 * 2 * (5 + 15 + 4))


class _Greedy:
    """Starts everything on its first way, whatever is free."""

    def decide(self, view: View) -> list[Start]:
        return [Start(task, view.options(task)[0]) for task in view.waiting]


def test_a_policy_that_takes_more_than_there_is_is_stopped(tmp_path: Path) -> None:
    demand = demand_of(tmp_path, [PAIR.format(priority=0)])
    with pytest.raises(PlannerError, match=r"high does not fit onprem/rack box \(owned\) at hour 5"):
        Course(demand, _Greedy()).play()


def test_the_answer_holds_and_what_is_changed_in_it_is_found(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "answer.json"
    result = run_cli("portfolio", str(EXAMPLE), "--as-of", "2026-11-20", "-o", "json", "--out", str(out))
    assert result.code == 0, result.stderr
    answer = json.loads(out.read_text())
    assert answer["kind"] == "portfolio_rolling"
    assert answer["totals"]["preemptions"] >= 1
    assert run_cli("verify", str(out), "--workload", str(EXAMPLE)).code == 0
    early, crowded, cheap, gone = (copy.deepcopy(answer) for _ in range(4))
    job = next(job for job in answer["jobs"] if job["job"] == "retrain")
    at = answer["jobs"].index(job)
    early["jobs"][at]["stints"][0]["begin_hours"] = 1.0
    first = answer["jobs"][0]["stints"][0]
    for name in ("begin_hours", "end_hours"):
        crowded["jobs"][at]["stints"][-1][name] = first[name]
    cheap["jobs"][at]["stints"][0]["cost_usd"] = 0.5
    gone["limits"][0]["available"] = 80
    for wrong, fault in (
        (early, "before the job arrives"), (crowded, "most|peak|before the job arrives"), (cheap, "cost_usd"),
        (gone, "available"),
    ):  # fmt: skip
        out.write_text(json.dumps(wrong))
        judged = run_cli("verify", str(out), "--workload", str(EXAMPLE))
        assert judged.code != 0
        assert any(word in judged.stdout + judged.stderr for word in fault.split("|")), judged.stdout


def test_commitments_and_quotas_of_equal_terms_are_told_apart(run_cli: Run, tmp_path: Path) -> None:
    """Jobs on two commitments of equal terms, and within two quotas of one place: runs say which row they hold."""
    place = "provider: aws, region: us-east-1"
    owned = f"{place}, instance_type: p5.48xlarge, purchase_option: reserved_3y"
    quota = "provider: aws, quota: P, unit: instances, purchase_option: on_demand"
    bought = f"{place}, instance_type: p4d.24xlarge, family: P, nodes: 3, hours: 2, cost_usd: 9"
    jobs = [
        f"{{name: {name}, workload: {ROOT / 'examples' / name}.yaml, deadline: 80h}}"
        for name in ("llama-70b-lora", "stable-diffusion-finetune")
    ]
    path, out = tmp_path / "equal.yaml", tmp_path / "equal.json"
    path.write_text(f"""version: 1
kind: portfolio
name: equal
start: 2026-12-01
rolling: {{every: 6h}}
commitments: [{{{owned}, nodes: 1}}, {{{owned}, nodes: 4, expires: 2026-12-09}}]
quota: [{{{quota}, region: "*", limit: 3}}, {{{quota}, region: us-east-1, limit: 5}}]
jobs: [{", ".join(jobs)}, {{name: bought, candidates: [{{{bought}}}]}}]
""")
    made = run_cli("portfolio", str(path), "--as-of", "2026-11-20", "-o", "json", "--out", str(out))
    assert made.code == 0, made.stderr
    answer = json.loads(out.read_text())
    assert [limit["peak"] for limit in answer["limits"]] == [1, 4, 3, 3]
    assert answer["limits"][0]["limit"] == answer["limits"][1]["limit"]
    assert answer["limits"][2]["limit"] == answer["limits"][3]["limit"]
    done = run_cli("verify", str(out), "--workload", str(path))
    assert done.code == 0, done.stdout
    draws = [draw for job in answer["jobs"] for stint in job["stints"] for draw in stint["draws"]]
    next(draw for draw in draws if draw["row"] == 1)["row"] = 0
    out.write_text(json.dumps(answer))
    assert run_cli("verify", str(out), "--workload", str(path)).code == 5


def test_work_carried_over_is_counted_by_the_judge(run_cli: Run, tmp_path: Path) -> None:
    """Of two racks one is busy for a day, so the second job waits; moved before that, it is one too many."""
    rack = "provider: onprem, region: here, instance_type: box, purchase_option: owned, nodes"
    path, out = tmp_path / "busy.yaml", tmp_path / "busy.json"
    path.write_text(f"""version: 1
kind: portfolio
name: busy
start: 2026-12-01
rolling: {{every: 6h}}
commitments: [{{{rack}: 2, busy_nodes: 1, busy_until: 2026-12-02}}]
jobs: [{{name: tune, count: 2, delay_usd_per_hour: 1, candidates: [{{{rack}: 1, hours: 30, cost_usd: 0}}]}}]
""")
    made = run_cli("portfolio", str(path), "--as-of", "2026-11-20", "-o", "json", "--out", str(out))
    assert made.code == 0, made.stderr
    answer = json.loads(out.read_text())
    begins = sorted(job["stints"][0]["begin_hours"] for job in answer["jobs"])
    assert begins[0] < 24.0 <= begins[1] and answer["limits"][0]["peak"] == 2
    assert run_cli("verify", str(out), "--workload", str(path)).code == 0
    for stint in (job["stints"][0] for job in answer["jobs"]):
        stint["end_hours"] -= stint["begin_hours"]
        stint["begin_hours"] = 0.0
    out.write_text(json.dumps(answer))
    done = run_cli("verify", str(out), "--workload", str(path), "-o", "json")
    faults = json.loads(done.stdout)["faults"]
    assert any("more than there is" in fault for fault in faults), faults


def test_an_answer_of_0_2_0_names_limits_without_their_rows(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "answer.json"
    made = run_cli("portfolio", str(EXAMPLE), "--as-of", "2026-11-20", "-o", "json", "--out", str(out))
    assert made.code == 0, made.stderr
    answer = json.loads(out.read_text())
    for job in answer["jobs"]:
        for stint in job["stints"]:
            stint["draws"] = [{"limit": one["limit"], "units": one["units"]} for one in stint["draws"]]
    out.write_text(json.dumps(answer))
    assert run_cli("verify", str(out), "--workload", str(EXAMPLE)).code == 0


@pytest.mark.parametrize(
    ("head", "job", "said"),
    [
        ("budget_usd: 5", "", "budget_usd: a rolling plan does not know it"),
        ("", "value_usd: 5", "has a value_usd: a rolling plan does not know it"),
        ("", "team: green", "no team 'green' under 'teams'"),
    ],
)
def test_what_a_rolling_plan_does_not_know_is_refused_by_name(
    tmp_path: Path, head: str, job: str, said: str
) -> None:
    file = tmp_path / "stream.yaml"
    lines = PAIR.format(priority=0).replace("team: blue", job or "team: blue")
    file.write_text(HEAD.replace("name: stream", f"name: stream\n{head}") + lines + "\n")
    with pytest.raises(InputError, match=said):
        plan_rolling(load_portfolio(file), NOW)


def test_arrivals_are_refused_where_all_jobs_are_planned_at_once() -> None:
    with pytest.raises(InputError) as refused:
        plan_portfolio(load_portfolio(EXAMPLE), NOW, PortfolioOptions())
    text = str(refused.value)
    assert "teams: is of rolling plans: plan with --rolling 1d" in text
    assert "job 'hotfix': priority is of rolling plans" in text


def test_an_option_of_one_plan_is_refused_beside_rolling(run_cli: Run) -> None:
    told = run_cli("portfolio", str(EXAMPLE), "--frontier", "3")
    assert (told.code, "--frontier: is of one plan" in told.stderr) == (2, True)
    told = run_cli("portfolio", str(EXAMPLE), "--rolling", "soon")
    assert (told.code, "--rolling" in told.stderr) == (2, True)


def test_what_to_type_next_saves_the_answer_before_it_is_verified(run_cli: Run) -> None:
    """With the step of this plan: `--rolling` comes before what the file says."""
    shown = run_cli("portfolio", EXAMPLE, "--rolling", "12h").unwrapped
    assert "next: planner portfolio FILE --rolling 12h -o json --out answer.json, verify answer.json" in shown
    assert "an hour until a job's end counts $0.50 times 1 + priority, at most 5 %" in shown


def test_the_first_screen_shows_the_latest_jobs_and_each_team(run_cli: Run) -> None:
    shown = run_cli("portfolio", EXAMPLE, "--rolling", "1d").stdout
    jobs = shown[shown.index("HOURS LATE") :]
    assert jobs.index("hotfix") < jobs.index("ablations#1")
    assert "8 x p4d.24xlarge  reserved_1y (owned)  Dec 3 00:00  Dec 3 09:00          15" in jobs
    assert "product 1 of 3 late, $2 bought; research 0 of 7 late" in shown


def test_a_job_that_nothing_can_run_stays_and_keeps_no_other(tmp_path: Path) -> None:
    wide = PAIR.format(priority=0).replace("nodes: 6, hours: 4", "nodes: 7, hours: 4")
    low, high = Course(demand_of(tmp_path, [wide]), RollingPolicy()).play().tasks
    assert (low.end, high.end, high.stints) == (20.0, None, [])
    assert figures_of(demand_of(tmp_path, [wide]), (low, high)).never == 1
