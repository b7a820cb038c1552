"""`--quota live`: the account's limits bind, unknown ones stay not checked, failures are told."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import catalogs.providers.quotas
from catalogs.providers.quotas import LiveQuota, LiveQuotas
from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.workloads.answer import optimize

EXAMPLE = Path(__file__).parents[3] / "examples" / "gpt3-175b.yaml"
NOW = datetime(2026, 11, 20, tzinfo=UTC)
P_FAMILY = "L-417A185B"


def plan_with(monkeypatch: pytest.MonkeyPatch, live: LiveQuotas):  # type: ignore[no-untyped-def]
    monkeypatch.setattr(catalogs.providers.quotas, "fetch_live_quotas", lambda providers, regions: live)
    return optimize(load_workload(EXAMPLE), Options(NOW, live_quota=True)).plan


def quota(limit: float, region: str = "us-east-1", code: str = P_FAMILY) -> LiveQuota:
    return LiveQuota(
        "aws", region, "Running On-Demand P instances", code, "vCPU", limit, "2026-11-20T00:00:00"
    )


def test_a_limit_of_the_account_binds(monkeypatch: pytest.MonkeyPatch) -> None:
    free = optimize(load_workload(EXAMPLE), Options(NOW)).plan
    assert (free.lines[0].provider, free.lines[0].region) == ("aws", "us-east-1")
    assert free.lines[0].quota.status == "not checked"
    bound = plan_with(monkeypatch, LiveQuotas((quota(96),), {}))
    assert (bound.lines[0].provider, bound.lines[0].region) != ("aws", "us-east-1")
    assert any(count.name == "quota" and count.removed for count in bound.filters)


def test_enough_quota_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_with(monkeypatch, LiveQuotas((quota(20_000),), {}))
    assert plan.lines[0].quota.limit == 20_000
    assert plan.lines[0].quota.status == "within the account's limit (read 2026-11-20 00:00 UTC)"


def test_what_is_not_understood_or_not_read_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = LiveQuota("aws", "us-east-1", "Some other thing", "L-0", "vCPU", 0.0, "2026-11-20T00:00:00")
    plan = plan_with(monkeypatch, LiveQuotas((odd,), {"gcp": "run gcloud auth application-default login"}))
    assert plan.lines[0].quota.status == "not checked"
    assert any("quota of gcp not read" in warning for warning in plan.warnings)
