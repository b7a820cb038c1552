"""Real answers of every kind, from the examples and the bundled catalog, each with the judge's check of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from catalogs.model import Catalog
from catalogs.store.load import load_catalog
from planner.inputs.load import LoadedWorkload, load_workload
from planner.judge.judge import Memory, judge_saved
from planner.judge.stated import PLAN

EXAMPLES = Path(__file__).parents[2] / "examples"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@dataclass(frozen=True)
class Saved:
    """An answer, what it states without proof, and the judge: every fault of an answer of its question."""

    name: str
    kind: str
    answer: dict[str, Any]
    stated: set[str]
    judge: Callable[[dict[str, Any]], list[str]]


# Variants of the examples that reach the other ways to buy: changes of sections, by name.
_OWNED = {
    "provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "nodes": 2,
    "purchase_option": "reserved_1y",
}  # fmt: skip
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "one zone of spot": ("bert-large", {}),
    "three zones of spot": ("bert-large", {"constraints": {"deadline": "12h"}}),
    "spot, else on-demand": ("bert-large", {"constraints": {"deadline": "60h", "providers": ["azure"]}}),
    "billed in CNY": ("bert-large", {"constraints": {"deadline": "200h", "providers": ["alibaba"]}}),
    "on-demand": ("bert-large", {"constraints": {"deadline": "60h", "purchase_options": ["on_demand"]}}),
    "a capacity block": ("bert-large", {"constraints": {"purchase_options": ["capacity_block"], "deadline": "100h"}}),
    "no deadline": ("llama-3-8b", {"constraints": {"deadline": None}}),
    "a present cluster": (
        "bert-large",
        {
            "baseline": {
                "provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "nodes": 4,
                "price_per_hour_usd": 20.5,
            }
        },
    ),
    "data and model moved": (
        "bert-large",
        {"data": {"access": "stage"}, "checkpoint": {"export": True, "keep": 3, "interval": "20min"}},
    ),
    "owned and more": ("owned-top-up", {}),
    "owned alone": (
        "bert-large",
        {
            "commitments": [_OWNED],
            "constraints": {
                "deadline": "80h", "instance_types": {"allow": ["p4d*"]},
                "purchase_options": ["on_demand", "reserved_1y"],
            },
        },
    ),
    "own prices": ("bert-large", {"prices": {"overlays": [{"change": "-8%"}]}}),
    "by time": ("bert-large", {"preferences": {"objective": "time"}}),
    "a task": ("images-100gb", {}),
    "pictures": ("resnet50-imagenet", {}),
    "a fleet": ("hpo-fleet", {}),
    "a fleet with shares": ("embed-images-fleet", {}),
}  # fmt: skip


def changed(name: str, changes: dict[str, Any], folder: Path) -> Path:
    """An example with some keys of its sections replaced, as a file; None removes a key."""
    if not changes:
        return EXAMPLES / f"{name}.yaml"
    content = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    for section, value in changes.items():
        own = content.get(section)
        content[section] = {**own, **value} if isinstance(own, dict) and isinstance(value, dict) else value
        if isinstance(content[section], dict):
            content[section] = {key: item for key, item in content[section].items() if item is not None}
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def plans(names: tuple[str, ...] = tuple(PLANS)) -> Iterator[Saved]:
    """Plans of `planner optimize`."""
    from planner.job.answer import Options, optimize

    folder, catalog = Path(tempfile.mkdtemp()), load_catalog()
    for name in names:
        loaded = load_workload(changed(*PLANS[name], folder))
        answer = optimize(loaded, Options(now=NOW)).plan.to_dict()
        assert answer["status"] == "planned", f"{name}: {answer['status']}"
        kind = "fleet" if answer["kind"] == "fleet" else "optimize"
        yield Saved(name, kind, json.loads(json.dumps(answer)), set(PLAN), _judge_plan(loaded, catalog))


def _judge_plan(loaded: LoadedWorkload, catalog: Catalog) -> Callable[[dict[str, Any]], list[str]]:
    memory = Memory(catalog, loaded.path.parent)

    def judge(answer: dict[str, Any]) -> list[str]:
        verdict = judge_saved(answer, loaded, memory=memory)
        return [*verdict.faults, *([verdict.nothing] if verdict.nothing else [])]

    return judge


@cache
def saved_answers() -> list[Saved]:
    """Answers of every kind."""
    return [*plans()]
