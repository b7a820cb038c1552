"""The plain reader on files other than workloads: what it takes, the models take with the same values."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from planner.inputs.pipeline_load import load_pipeline
from planner.inputs.pipeline_schema import Pipeline
from planner.inputs.plain import (
    PIPELINE_ROOT,
    PORTFOLIO_ROOT,
    SCHEDULE_ROOT,
    SERVING_ROOT,
    read_section,
    section_of,
)
from planner.inputs.portfolio_load import load_portfolio
from planner.inputs.portfolio_schema import Portfolio, PortfolioJob, SharedCommitment
from planner.inputs.risk_schema import RiskAversion
from planner.inputs.schedule_load import load_schedule
from planner.inputs.schedule_schema import Schedule
from planner.inputs.serving_load import load_serving
from planner.inputs.serving_schema import Serving
from planner.inputs.view import SectionView, as_view, encode_section
from tests.conftest import CliResult
from tests.planner.inputs.test_plain import ODD, ROOT, _paths

EXAMPLES = ROOT / "examples"
JOB = {
    "name": "a", "workload": "w.yaml", "count": 2, "must_run": False, "value_usd": "$2,000", "delay_usd_per_hour": 3,
    "earliest_start": "2026-12-01", "deadline": "5d", "submitted": "1h", "team": "vision", "priority": 1,
    "checkpoint_hours": 2, "restart_hours": 0.5,
}  # fmt: skip
SIZED = {
    "provider": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge", "family": "P", "nodes": 2, "hours": 3.5,
    "purchase_option": "spot", "cost_usd": 12, "usd_per_hour": None, "quota_units": 384,
}  # fmt: skip
QUOTA = {
    "provider": "aws", "region": "*", "quota": "P", "unit": "vCPU", "limit": 384, "purchase_option": "spot",
    "window": "w1",
}  # fmt: skip
PORTFOLIO = {
    "version": 1, "kind": "portfolio", "name": "all", "description": "of it", "start": "2026-12-01T08:00Z",
    "windows": [{"name": "w1", "start": "2026-12-01"}], "starts": "windows", "budget_usd": "$12,000", "quota": [QUOTA],
    "commitments": [{
        "provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "purchase_option": "reserved_1y",
        "nodes": 6, "busy_nodes": 2, "busy_until": "2026-12-03", "usd_per_node_hour": 12,
    }],
    "jobs": [JOB, {"name": "b", "candidates": [SIZED], "data": {"location": "aws/us-east-1", "size": "2TB"}}],
    "jobs_csv": "more.csv", "candidates_csv": "sized.csv", "teams": {"vision": {"share": 0.5, "quota": [QUOTA]}},
    "rolling": {"every": "1d", "hours_margin": 0.1},
    "risk": {"measure": "cvar", "level": 0.9, "weight": 0.4, "scenarios": 100, "seed": 3},
    "relaxation": {"usd_per_quota_unit": 3, "usd_per_owned_node": 4, "usd_per_hour_late": 5,
        "usd_per_usd_over_budget": 2},
}  # fmt: skip
PIPELINE = {
    "version": 1, "kind": "pipeline", "name": "all", "description": "of it", "start": "2026-12-01", "deadline": "8d",
    "budget_usd": 500, "risk": {"level": 0.95},
    "tasks": [
        {"name": "a", "candidates": [SIZED]},
        {"name": "b", "workload": "w.yaml", "reads": [{"task": "a", "size": "2TB"}]},
    ],
}  # fmt: skip
SCHEDULE = {
    "version": 1, "kind": "schedule", "name": "all", "description": "of it", "start": "2026-12-01",
    "work_unit": "samples", "forecast_csv": "hours.csv",
    "pools": [{
        "name": "p", "provider": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge",
        "purchase_option": "spot", "work_per_node_hour": 1.5, "startup_hours": 0.25, "startup_usd": 2,
    }],
    "jobs": [{
        "name": "a", "work": 150, "earliest_start": "1d", "deadline": "2026-12-05", "min_nodes": 2, "max_nodes": 8,
        "one_region": False, "data": {"size": "2TB", "location": "aws/us-east-1"}, "work_per_node_hour": {"p": 3},
    }],
}  # fmt: skip
SERVING = {
    "version": 1, "kind": "serving", "name": "all", "description": "of it", "headroom_ratio": 0.2, "max_nodes": 9,
    "buckets": [{"name": "short", "requests_per_s": 12, "input_tokens": 300, "output_tokens": 80.5}],
    "machines": [
        {
            "name": "m", "provider": "aws", "region": "us-east-1", "instance_type": "g6.xlarge",
            "purchase_option": "reserved_1y", "usd_per_hour": "$1.20", "max_nodes": 4, "tensor_parallel": 2,
            "requests_per_s": {"short": 3}, "measured": {"short": 2.5},
        },
    ],
    "model": {"preset": "llama-3-8b", "layers": 32}, "inference": {"engine": "vllm", "precision": "fp8"},
    "latency": {"time_to_first_token_s": 1, "time_per_token_s": 0.05}, "confidence": 0.95, "speeds_csv": "more.csv",
}  # fmt: skip
KINDS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    PORTFOLIO_ROOT: (Portfolio, PORTFOLIO), PIPELINE_ROOT: (Pipeline, PIPELINE),
    SCHEDULE_ROOT: (Schedule, SCHEDULE), SERVING_ROOT: (Serving, SERVING),
}  # fmt: skip


def _agree(root: str, data: dict[str, Any]) -> bool:
    """Whether the plain reader took the data; fails where the models say otherwise."""
    plain = read_section(root, copy.deepcopy(data))
    try:
        model = KINDS[root][0].model_validate(data)
    except ValidationError:
        assert plain is None
        return False
    assert plain is None or encode_section(plain) == encode_section(model)
    return plain is not None


def _put(data: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = copy.deepcopy(value)


@pytest.mark.parametrize("root", KINDS)
def test_files_with_every_key_are_read(root: str) -> None:
    assert _agree(root, KINDS[root][1])


@pytest.mark.parametrize("root", KINDS)
def test_both_readers_agree_on_odd_values_everywhere(root: str) -> None:
    data = KINDS[root][1]
    taken = 0
    for path in _paths(data)[1:]:
        for odd in ODD:
            changed = copy.deepcopy(data)
            _put(changed, path, odd)
            taken += _agree(root, changed)
    assert taken > 150


@pytest.mark.hypothesis
@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_both_readers_agree_on_changed_keys(drawn: st.DataObject, root: str) -> None:
    data = copy.deepcopy(KINDS[root][1])
    for _ in range(drawn.draw(st.integers(1, 4))):
        path = drawn.draw(st.sampled_from([path for path in _paths(data) if path]))
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        if drawn.draw(st.booleans()) and isinstance(place, dict):
            place[drawn.draw(st.sampled_from(["quota", "name", "Tokens", "inline", "data", "workload"]))] = (
                place.pop(path[-1])
            )
        else:
            _put(data, path, drawn.draw(st.sampled_from(ODD)))
    _agree(root, data)


def test_sections_made_without_a_check_are_those_of_the_models() -> None:
    given = {
        "provider": "x", "region": "y", "instance_type": "z", "purchase_option": "owned", "nodes": 3,
    }  # fmt: skip
    made = SharedCommitment.model_construct(None, **given)
    assert encode_section(section_of("SharedCommitment", **given)) == encode_section(made)
    assert encode_section(section_of("RiskAversion")) == encode_section(RiskAversion.model_construct())


def test_a_file_read_by_the_models_is_a_view_too(tmp_path: Path) -> None:
    workload = (EXAMPLES / "resnet50-imagenet.yaml").read_text()
    inline = "\n      ".join(workload.splitlines())
    path = tmp_path / "jobs.yaml"
    path.write_text(
        f"version: 1\nkind: portfolio\nname: two\njobs:\n  - name: a\n    inline:\n      {inline}\n"
    )
    loaded = load_portfolio(path)
    assert isinstance(loaded.portfolio, SectionView)
    assert isinstance(loaded.workloads[0].workload, SectionView)  # type: ignore[union-attr]
    plain = load_portfolio(EXAMPLES / "portfolio.yaml")
    assert isinstance(plain.portfolio, SectionView)
    assert all(isinstance(job, SectionView) for job in (*plain.jobs, *loaded.jobs))
    assert isinstance(load_pipeline(EXAMPLES / "pipeline.yaml").pipeline, SectionView)
    assert isinstance(load_schedule(EXAMPLES / "schedule.yaml").schedule, SectionView)
    assert isinstance(load_serving(EXAMPLES / "serving.yaml").serving, SectionView)


def test_jobs_of_a_csv_are_those_of_the_models(tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text(
        "name,workload,count,must_run,value_usd,deadline\nb,w.yaml,3,false,$20,2d\n"
    )
    (tmp_path / "w.yaml").write_text((EXAMPLES / "resnet50-imagenet.yaml").read_text())
    path = tmp_path / "jobs.yaml"
    path.write_text("version: 1\nkind: portfolio\nname: two\njobs_csv: more.csv\n")
    values = {
        "name": "b", "workload": "w.yaml", "count": 3, "must_run": False, "value_usd": "$20", "deadline": "2d",
    }  # fmt: skip
    assert load_portfolio(path).jobs == (as_view(PortfolioJob.model_validate(values)),)


@pytest.mark.parametrize(
    ("file", "room"),
    [
        ("portfolio", "portfolios"),
        ("pipeline", "pipelines"),
        ("schedule", "schedules"),
        ("serving", "serving"),
        ("serving-llama-8b", "serving"),
    ],
)
def test_a_valid_file_needs_no_pydantic(file: str, room: str) -> None:
    kind = file.partition("-")[0]
    code = (
        f"import sys; from pathlib import Path; from planner.inputs.{kind}_load import load_{kind}\n"
        f"import planner.{room}.answer; load_{kind}(Path(sys.argv[1])); sys.exit('pydantic' in sys.modules)"
    )
    asked = [sys.executable, "-c", code, str(EXAMPLES / f"{file}.yaml")]
    assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("portfolio", "budget_usd"),
        ("pipeline", "budget_usd"),
        ("schedule", "known here"),
        ("serving", "buckets"),
    ],
)
def test_standard_input_is_read_once_whoever_refuses_it(
    kind: str, known: str, run_cli: Callable[..., CliResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"version: 1\nkind: {kind}\nname: two\nbudget: 3\n".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    refused = run_cli(kind, "-")
    assert refused.code == 2 and "-:4:1: budget" in refused.stderr and known in refused.stderr
