"""Machines as people name them: short names, what has no price, what is no longer sold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.modules import ROOT

Run = Callable[..., Any]


def _workload(path: Path, **constraints: Any) -> str:
    values = yaml.safe_load((ROOT / "examples" / "resnet50-imagenet.yaml").read_text(encoding="utf-8"))
    values["constraints"] = constraints
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return str(path)


def test_a_short_name_stands_for_its_cards(run_cli: Run, tmp_path: Path) -> None:
    path = _workload(tmp_path / "w.yaml", accelerators={"allow": ["H100", "a100-80"]})
    done = run_cli("optimize", path, "--as-of", "2026-11-20")
    assert done.code == 0 and ("h100-" in done.stdout or "a100-80gb-" in done.stdout)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"accelerators": {"allow": ["tpu-v5e"]}}, "no offers with prices for tpu-v5e-16gb"),
        (
            {"instance_types": {"allow": ["ecs.gn7-c13g1.6xlarge"]}},
            "no offers with prices for ecs.gn7-c13g1.6xlarge",
        ),
        ({"accelerators": {"allow": ["H1000"]}}, "no accelerator called 'H1000' in the catalog"),
    ],
)
def test_what_has_no_price_is_named_as_such(
    run_cli: Run, tmp_path: Path, rule: dict[str, Any], says: str
) -> None:
    done = run_cli("optimize", _workload(tmp_path / "w.yaml", **rule), "--as-of", "2026-11-20")
    assert done.code == 2 and says in done.stderr


def test_a_retired_machine_is_used_only_where_it_is_named(run_cli: Run, tmp_path: Path) -> None:
    path = _workload(tmp_path / "w.yaml", instance_types={"allow": ["p3.2xlarge"]})
    done = run_cli("optimize", path, "--as-of", "2026-11-20")
    assert done.code == 0 and "p3.2xlarge: The type is retired" in " ".join(done.stdout.split())
    family = _workload(tmp_path / "f.yaml", instance_types={"allow": ["p3.2*"]})
    assert run_cli("optimize", family, "--as-of", "2026-11-20").code == 3


def test_a_price_without_a_place_is_said_on_the_plan(run_cli: Run, tmp_path: Path) -> None:
    done = run_cli("optimize", _workload(tmp_path / "w.yaml", providers=["lambda"]), "--as-of", "2026-11-20")
    assert done.code == 0 and "Place and stock not known" in done.stdout
