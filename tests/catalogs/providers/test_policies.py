"""The least-privilege policies in docs/policies allow exactly what the providers call, and nothing that writes."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalogs.providers.registry import BUILT_IN

POLICIES = Path(__file__).resolve().parents[3] / "docs" / "policies"
WITH_ACCOUNT = ("aws", "gcp", "azure", "alibaba")
READS = re.compile(r"(?:[\w-]+:(?:Describe|List|Get)\w*|compute\.\w+\.(?:get|list)|Microsoft\.[\w/]+/read)")


def _calls(name: str) -> Any:
    return importlib.import_module(BUILT_IN[name]).API_CALLS


def _allowed(name: str) -> list[str]:
    if name == "gcp":
        return list(
            yaml.safe_load((POLICIES / "gcp.yaml").read_text(encoding="utf-8"))["includedPermissions"]
        )
    policy = json.loads((POLICIES / f"{name}.json").read_text(encoding="utf-8"))
    if "Actions" in policy:
        return list(policy["Actions"])
    (statement,) = policy["Statement"]
    assert statement["Effect"] == "Allow"
    return list(statement["Action"])


@pytest.mark.parametrize("name", WITH_ACCOUNT)
def test_a_policy_allows_what_is_called_and_nothing_else(name: str) -> None:
    needed = {call.permission for call in _calls(name) if call.permission}
    assert sorted(needed) == _allowed(name)  # sorted, each once


@pytest.mark.parametrize("name", WITH_ACCOUNT)
def test_a_policy_only_reads(name: str) -> None:
    assert [action for action in _allowed(name) if not READS.fullmatch(action)] == []


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_provider_says_what_it_calls_and_why(name: str) -> None:
    calls = _calls(name)
    assert calls and len({call.call for call in calls}) == len(calls)
    assert all(call.call and call.needed_for for call in calls)


def _called_in_code(name: str) -> set[str]:
    """Names of calls that the provider's modules write in their code, by the form each cloud has."""
    folder = Path(importlib.import_module(BUILT_IN[name]).__file__ or "").parent
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob(f"{name}*.py")))
    forms = {
        "aws": r'"((?:ec2|pricing|savingsplans|service-quotas):[A-Z]\w+)"',
        "alibaba": r'"((?:Describe|List|Get)[A-Z]\w+)"',
    }
    found = set(re.findall(forms[name], text))
    return {f"ecs:{call}" for call in found} if name == "alibaba" else found


@pytest.mark.parametrize("name", ["aws", "alibaba"])
def test_no_call_of_the_code_is_missing_from_the_table(name: str) -> None:
    found = _called_in_code(name)
    assert found and found <= {call.call for call in _calls(name)}


@pytest.mark.parametrize("name", WITH_ACCOUNT)
def test_the_page_on_providers_names_each_policy_and_login(name: str) -> None:
    page = (POLICIES.parent / "providers.md").read_text(encoding="utf-8")
    assert f"policies/{name}." in page and f"`{name}`" in page
