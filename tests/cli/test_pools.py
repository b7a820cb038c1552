"""`planner pools`: trainer and rollout pools chosen together, recomputed by `planner verify`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.conftest import ROOT, CliResult

Run = Callable[..., CliResult]
DAY = ("--as-of", "2026-11-20")
WORKLOAD = """
version: 1
name: grpo
model: {preset: llama-3.1-8b}
training:
  objective: grpo
  steps: 200
  global_batch: 1024
  rollouts:
    prompt_tokens: {mean: 150, max: 512}
    response_tokens: {mean: 870, p95: 1740, max: 3584}
    samples_per_prompt: 32
    engine: vllm
    placement: disaggregated
    steps_off_policy: AHEAD
data: {samples: 32_000, location: aws/us-east-1}
constraints:
  regions: [aws/us-east-1, aws/us-west-2]
  accelerators: {allow: ["h100*", "a100*", "l40s*"]}
  max_nodes: 8
"""
pytestmark = pytest.mark.catalog("small")


CLOSE = 5e-3  # what the search leaves out
# the same where any pair that keeps a limit will do: to prove how close it is takes most of a search
LOOSELY = 0.3
# no spot that a record speaks for: few ways to buy
FEW = WORKLOAD.replace('"h100*", "a100*", "l40s*"', '"l40s*"')
SHORT = "assumptions: {pools_horizon_hours: 1}"  # before which no pair ends
_ANSWERS: dict[tuple[str, float], tuple[CliResult, str]] = {}


def asked(
    run_cli: Run, folder: Path, *, ahead: int = 1, limits: str = "", text: str = WORKLOAD, left: float = CLOSE
) -> tuple[CliResult, str, dict[str, Any]]:
    """The answer to a workload, written to pools.json; most tests start from that of the same two workloads.

    `left`: share of the cost that the search leaves out.
    """
    path, target = folder / "grpo.yaml", folder / "pools.json"
    text = f"{text.replace('AHEAD', str(ahead))}{limits}".rstrip() + "\n"
    path.write_text(text, encoding="utf-8")
    if (text, left) not in _ANSWERS:
        with mock.patch("planner.pipelines.pools_by_deadline._CLOSE", 1.0 - left):
            done = run_cli("pools", str(path), "-o", "json", "--out", str(target), *DAY)
        _ANSWERS[text, left] = done, target.read_text(encoding="utf-8")
    done, written = _ANSWERS[text, left]
    target.write_text(written, encoding="utf-8")
    return done, str(path), json.loads(written)


@pytest.mark.parametrize(("ahead", "limits"), [(1, ""), (0, ""), (1, "  deadline: 3d")])
def test_a_pair_holds_and_its_step_is_that_of_both(
    run_cli: Run, tmp_path: Path, ahead: int, limits: str
) -> None:
    done, path, found = asked(run_cli, tmp_path, ahead=ahead, limits=limits)
    assert done.code == 0, done.stderr
    parts = [found["train_s"], found["generate_s"]]
    assert found["step_s"] == pytest.approx((max(parts) if ahead else sum(parts)) + found["refit_s"])
    assert found["logprob_s"] + found["update_s"] == pytest.approx(found["train_s"])
    assert sum(pool["nodes"] for pool in found["pools"]) <= 8
    if limits:  # spot with on-demand to fall back on, in one region
        assert found["sure_hours"] <= 72 and 0 <= found["gap_ratio"] < 0.01
        assert all(pool["deadline_hours"] <= found["sure_hours"] for pool in found["pools"])
        assert len({(part["provider"], part["region"]) for p in found["pools"] for part in p["parts"]}) == 1
        assert all(p["parts"][-1]["purchase_option"] == "on_demand" for p in found["pools"])
    else:  # by the horizon of who gives no deadline
        assert 0 <= found["gap_ratio"] < 0.01
        assert found["deadline_hours"] is None and found["horizon_hours"] == 720
        assert all(pool["deadline_hours"] <= found["sure_hours"] <= 720 for pool in found["pools"])
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert (verdict.code, verdict.stderr) == (0, ""), verdict.stdout


@pytest.mark.parametrize(
    ("place", "factor", "wrong"),
    [
        ("refit_s", 0.5, "refit_s"),
        ("step_s", 0.9, "step_s"),
        ("sure_hours", 0.9, "pools[0].deadline_hours"),  # which follows from the planned end
        ("hours", 0.9, "hours"),
        ("cost_usd", 0.9, "cost_usd"),
    ],
)
def test_a_changed_figure_is_a_fault(
    run_cli: Run, tmp_path: Path, place: str, factor: float, wrong: str
) -> None:
    _, path, found = asked(run_cli, tmp_path)
    value = found[place]
    found[place] = str(Decimal(value) * Decimal(repr(factor))) if isinstance(value, str) else value * factor
    (tmp_path / "pools.json").write_text(json.dumps(found), encoding="utf-8")
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 5 and wrong in verdict.stdout


@pytest.mark.parametrize("factor", [0.99, 1.01, 3.0, 30.0])
@pytest.mark.parametrize("deadline", ["", "  deadline: 3d"])
def test_an_end_that_the_pools_are_not_planned_for_is_a_fault(
    run_cli: Run, tmp_path: Path, deadline: str, factor: float
) -> None:
    _, path, found = asked(run_cli, tmp_path, limits=deadline)
    found["sure_hours"] *= factor
    (tmp_path / "pools.json").write_text(json.dumps(found), encoding="utf-8")
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 5 and ("sure_hours" in verdict.stdout or "deadline_hours" in verdict.stdout)


def test_a_pair_by_a_deadline_costs_less_with_a_fall_back_than_without(run_cli: Run, tmp_path: Path) -> None:
    _, _, some = asked(run_cli, tmp_path, limits="  deadline: 3d")
    _, _, none = asked(run_cli, tmp_path, limits="  deadline: 3d\nspot: {fallback: none}")
    assert Decimal(some["cost_usd"]) < Decimal(none["cost_usd"])
    assert Decimal(some["bound_usd"]) <= Decimal(some["cost_usd"])


def test_no_deadline_costs_no_more_than_a_deadline_at_the_horizon(run_cli: Run, tmp_path: Path) -> None:
    """Of another model than in `test_pools_by_deadline`, where earlier deadlines cost no less, by closer searches."""
    text = WORKLOAD.replace("llama-3.1-8b", "qwen2.5-1.5b").replace("max_nodes: 8", "max_nodes: 3")
    left = 0.02
    _, _, free = asked(run_cli, tmp_path, ahead=0, text=text, left=left)
    _, _, last = asked(run_cli, tmp_path, ahead=0, text=text, limits="  deadline: 720h", left=left)
    assert float(free["cost_usd"]) <= float(last["cost_usd"]) * (1 + left)


def test_pairs_that_may_end_at_any_time_are_compared_with_those_by_the_horizon(
    run_cli: Run, tmp_path: Path
) -> None:
    _, _, some = asked(run_cli, tmp_path)
    _, path, none = asked(run_cli, tmp_path, limits=SHORT)
    assert none["horizon_hours"] == 1 and all(pool["deadline_hours"] is None for pool in none["pools"])
    assert Decimal(some["cost_usd"]) < Decimal(none["cost_usd"])
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 0, verdict.stdout
    screen = run_cli("pools", path, *DAY)
    assert "no deadline" in screen.stdout and "pools_horizon_hours" in " ".join(screen.stdout.split())


@pytest.mark.parametrize(("change", "place"), [(24.0, "horizon_hours"), (None, "horizon_hours")])
def test_another_horizon_than_the_assumed_one_is_a_fault(
    run_cli: Run, tmp_path: Path, change: float | None, place: str
) -> None:
    _, path, found = asked(run_cli, tmp_path)
    if change is None:
        del found[place]
    else:
        found[place] += change
    (tmp_path / "pools.json").write_text(json.dumps(found), encoding="utf-8")
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 5 and place in verdict.stdout


QUOTA = "  quota: [{provider: aws, region: '*', quota: All P5 Spot Instance Requests, limit: 192}]"


@pytest.mark.parametrize("deadline", ["", "  deadline: 3d"])
def test_pools_of_a_region_share_a_quota(run_cli: Run, tmp_path: Path, deadline: str) -> None:
    _, _, free = asked(run_cli, tmp_path, limits=deadline)
    text = WORKLOAD.replace('"h100*", "a100*", "l40s*"', '"h100*"')  # which is what is bought without a quota
    done, path, found = asked(run_cli, tmp_path, limits=f"{deadline}\n{QUOTA}", text=text, left=LOOSELY)
    assert done.code == 0, done.stderr
    assert _p5_spot(free) > 192 >= _p5_spot(found)
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 0, verdict.stdout
    free |= {"workload_sha256": found["workload_sha256"]}
    (tmp_path / "pools.json").write_text(json.dumps(free), encoding="utf-8")
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 5 and "together on aws/" in verdict.stdout


OBTAINABLE = "  obtainable: [{provider: aws, accelerator: '*', purchase_option: spot, accelerators: 8}]"


@pytest.mark.parametrize("deadline", ["", "  deadline: 3d"])
def test_pools_that_buy_the_same_offer_find_machines_for_both(
    run_cli: Run, tmp_path: Path, deadline: str
) -> None:
    _, _, free = asked(run_cli, tmp_path, limits=deadline)
    assert _same_offer(free) > 8
    done, path, found = asked(run_cli, tmp_path, limits=f"{deadline}\n{OBTAINABLE}", left=LOOSELY)
    assert done.code == 0, done.stderr
    assert _same_offer(found) <= 8
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 0, verdict.stdout
    free |= {"workload_sha256": found["workload_sha256"]}
    (tmp_path / "pools.json").write_text(json.dumps(free), encoding="utf-8")
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 5 and "16 x " in verdict.stdout and "the assumed limit is 8" in verdict.stdout


def _same_offer(found: dict[str, Any]) -> float:
    """Accelerators of the spot offer that both pools buy most of."""
    drawn: dict[str, list[float]] = {}
    for pool in found["pools"]:
        for part in pool["parts"]:
            if part["purchase_option"] == "spot":
                drawn.setdefault(part["offer_id"], []).append(pool["accelerators"])
    return max((sum(each) for each in drawn.values() if len(each) > 1), default=0.0)


def _p5_spot(found: dict[str, Any]) -> float:
    """vCPUs of P5 on spot in the region that uses most."""
    drawn: dict[str, int] = {}
    for pool in found["pools"]:
        spot = [
            p for p in pool["parts"] if p["purchase_option"] == "spot" and p["instance_type"].startswith("p5")
        ]
        for region in {part["region"] for part in spot}:
            drawn[region] = drawn.get(region, 0) + 192 * pool["nodes"]
    return max(drawn.values(), default=0)


def _forged(pool: dict[str, Any], key: str) -> None:
    if key == "places":
        here = pool["parts"][0]["region"]
        elsewhere = {"us-west-2": "us-east-1", "us-east-1": "us-west-2"}[here]
        pool["parts"][0]["offer_id"] = pool["parts"][0]["offer_id"].replace(here, elsewhere)
    elif key == "turns":
        del pool["parts"][-1]
    else:
        pool[key] *= 0.97


@pytest.mark.parametrize("deadline", ["", "  deadline: 3d"])
def test_a_changed_pool_with_an_end_of_its_own_is_a_fault(
    run_cli: Run, tmp_path: Path, deadline: str
) -> None:
    _, path, found = asked(run_cli, tmp_path, limits=deadline)
    for key in ("deadline_hours", "stretch", "paced_s", "hours", "turns", "places"):
        forged = deepcopy(found)
        _forged(forged["pools"][1], key)
        (tmp_path / "pools.json").write_text(json.dumps(forged), encoding="utf-8")
        verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
        assert verdict.code in (2, 5), key


@pytest.mark.parametrize(
    ("deadline", "rule", "fault"),
    [
        ("  deadline: 3d", "spot: {fallback: none}", "the workload allows no fall-back"),
        ("  deadline: 3d", "  purchase_options: [on_demand]", "purchase option spot is not allowed"),
        ("", "  purchase_options: [on_demand]", "purchase option spot is not allowed"),
        ("", "  instance_types: {deny: [p*]}", "instance_type p"),
        ("", "  min_memory_gib: 400", "400 asked"),
        (
            "",
            "  obtainable: [{provider: aws, accelerator: '*', purchase_option: spot, accelerators: 4}]",
            "the assumed limit is 4",
        ),
    ],
)
def test_pools_that_the_workload_does_not_allow_are_a_fault(
    run_cli: Run, tmp_path: Path, deadline: str, rule: str, fault: str
) -> None:
    _, path, found = asked(run_cli, tmp_path, limits=deadline)
    text = f"{Path(path).read_text(encoding='utf-8')}{rule}\n"
    Path(path).write_text(text, encoding="utf-8")
    found["workload_sha256"] = sha256(text.encode()).hexdigest()
    (tmp_path / "pools.json").write_text(json.dumps(found), encoding="utf-8")
    verdict = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
    assert verdict.code == 5 and fault in " ".join(verdict.stdout.split()), verdict.stdout


def test_a_budget_that_no_pair_keeps_is_said(run_cli: Run, tmp_path: Path) -> None:
    done, _, found = asked(run_cli, tmp_path, limits="  budget_usd: 1", text=FEW)
    assert done.code == 3 and "over the budget" in found["reason"]


def test_no_pair_in_time_is_said(run_cli: Run, tmp_path: Path) -> None:
    done, _, found = asked(run_cli, tmp_path, limits="  deadline: 1h")
    assert done.code == 3 and not found["pools"] and found["reason"]


def test_values_put_over_the_file_are_planned_and_verified(run_cli: Run, tmp_path: Path) -> None:
    asked(run_cli, tmp_path, limits="  budget_usd: 1", text=FEW)
    path, target, more = (
        tmp_path / "grpo.yaml",
        tmp_path / "more.json",
        ("--set", "constraints.budget_usd=9000"),
    )
    assert run_cli("pools", path, *more, "-o", "json", "--out", target, *DAY).code == 0
    assert json.loads(target.read_text())["budget_usd"] == "9000"
    assert run_cli("verify", target, "--workload", path, *more).code == 0
    assert run_cli("verify", target, "--workload", path).code == 5


def test_a_workload_without_rollouts_is_refused(run_cli: Run) -> None:
    done = run_cli("pools", str(ROOT / "examples" / "bert-large.yaml"), *DAY)
    assert done.code == 2 and "training.rollouts" in done.stderr


def test_what_is_paid_until_a_day_costs_less_than_nothing_paid_and_no_less_where_it_ends_sooner(
    run_cli: Run, tmp_path: Path
) -> None:
    costs = []
    for ends in ("", ', expires: "2026-11-23T00:00Z"', ', expires: "2026-11-21T00:00Z"', None):
        held = (
            "  deadline: 3d\n"
            "commitments: [{provider: aws, region: us-east-1, instance_type: p4d.24xlarge,"
            f" purchase_option: reserved_1y, nodes: 1{ends}}}]\n"
        )
        limits = "  deadline: 3d\n" if ends is None else held
        done, path, found = asked(run_cli, tmp_path, ahead=1, limits=limits)
        assert done.code == 0, done.stderr
        checked = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
        assert checked.code == 0, checked.stdout
        costs.append(float(found["cost_usd"]))
    assert all(sooner >= later * (1.0 - CLOSE) for later, sooner in itertools.pairwise(costs))
    assert costs[0] < costs[1] < costs[-1]


@pytest.mark.parametrize("until", ["", ', expires: "2026-11-25T00:00Z"'])
def test_both_pools_run_on_what_is_paid_where_it_holds_them(run_cli: Run, tmp_path: Path, until: str) -> None:
    """As where nothing else may be bought; of two commitments of equal terms, each pool is on one of its own."""
    costs, machine = [], "provider: aws, region: us-east-1, instance_type: p4d.24xlarge"
    for only in ("", "  purchase_options: [reserved_1y]\n"):
        limits = f"  deadline: 3d\n{only}commitments:\n" + "".join(
            f"  - {{{machine}, purchase_option: reserved_1y, nodes: 1{ends}}}\n"
            for ends in (', expires: "2026-11-23T12:00Z"', until)
        )
        done, path, found = asked(run_cli, tmp_path, ahead=1, limits=limits)
        assert done.code == 0, done.stderr
        assert [pool["parts"][0]["purchase_option"] for pool in found["pools"]] == ["reserved_1y"] * 2
        checked = run_cli("verify", str(tmp_path / "pools.json"), "--workload", path)
        assert checked.code == 0, checked.stdout
        costs.append(float(found["cost_usd"]))
    assert costs[0] == pytest.approx(costs[1], rel=CLOSE) and costs[0] < 1.0
