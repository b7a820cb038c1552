"""Shapes from a copy are those that would be estimated, and no copy is used where anything could differ."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from catalogs.tables.table import Coded, Table
from planner.performance import kept, search, spec
from planner.performance.post_training import spec as post_training
from planner.performance.spec import ModelSpec, TrainingSpec
from tests.planner.performance.test_performance import A100, LLAMA_70B, RESNET, SMALL, T4, machines

ROOT = Path(__file__).parents[3]
TRAINING = TrainingSpec(64, 2048, "fp16")
COUNTS = (1, 2, 3)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path))
    return tmp_path


def content(table: Table) -> dict[str, Any]:
    """Every column as bytes, with its type and texts."""
    out: dict[str, Any] = {}
    for name in table:
        stored = table.column(name)
        values, texts = (stored.codes, stored.values) if isinstance(stored, Coded) else (stored, None)
        out[name] = values.dtype.str, values.tobytes(), texts
    return out


@pytest.mark.parametrize("model", [SMALL, LLAMA_70B, RESNET], ids=lambda model: model.name)
def test_a_copy_is_what_was_estimated_to_the_last_bit(
    model: ModelSpec, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = replace(TRAINING, sequence_length=1) if model is RESNET else TRAINING
    hardware = machines(A100, T4, A100)
    anew = search.estimate_shapes(model, training, hardware, COUNTS)
    first = kept.estimate_shapes(model, training, hardware, COUNTS)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.delattr(search, "estimate_shapes")
    again = kept.estimate_shapes(model, training, hardware, COUNTS)
    assert list(again) == list(anew)
    assert content(again) == content(first) == content(anew)
    # numpy copies what is not aligned value by value
    assert all(np.asarray(again[name]).flags.aligned for name in again)


def questions() -> Iterator[tuple[ModelSpec, TrainingSpec, dict[str, Any], tuple[int, ...]]]:
    """What differs from the question that was asked in one value."""
    yield SMALL, TRAINING, A100, (1, 2)
    yield SMALL, TRAINING, A100, (1, 2, 4)
    yield replace(SMALL, layers=25), TRAINING, A100, COUNTS
    yield replace(SMALL, params=math.nextafter(SMALL.params, 0)), TRAINING, A100, COUNTS
    yield SMALL, replace(TRAINING, global_batch=65), A100, COUNTS
    yield SMALL, replace(TRAINING, precision="bf16"), A100, COUNTS
    for name, value in A100.items():
        if isinstance(value, str):
            yield SMALL, TRAINING, {**A100, name: value + "x"}, COUNTS
        else:
            other = 1.0 if math.isnan(value) else math.nextafter(value, 0)
            yield SMALL, TRAINING, {**A100, name: other}, COUNTS


def test_another_question_finds_no_copy(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.estimate_shapes(SMALL, TRAINING, machines(A100), COUNTS)
    monkeypatch.setattr(search, "estimate_shapes", _refuse)
    kept.estimate_shapes(SMALL, TRAINING, machines(A100), COUNTS)
    for model, training, machine, counts in questions():
        with pytest.raises(AssertionError, match="estimated anew"):
            kept.estimate_shapes(model, training, machines(machine), counts)
    monkeypatch.setattr(kept, "_rules", lambda: b"a later version")
    with pytest.raises(AssertionError, match="estimated anew"):
        kept.estimate_shapes(SMALL, TRAINING, machines(A100), COUNTS)


def _refuse(*_args: object, **_given: object) -> Table:
    raise AssertionError("estimated anew")


@pytest.mark.parametrize("module", [spec, post_training], ids=["spec", "post_training"])
def test_no_field_of_a_question_is_left_out_of_its_text(module: ModuleType) -> None:
    """The key is a hash of that text, and the text of a record names every field."""
    classes = [one for one in vars(module).values() if is_dataclass(one)]
    assert len(classes) > 4
    assert {vars(one)["__repr__"].__module__ for one in classes} == {"planner.records"}


def test_damaged_and_foreign_copies_are_not_used(cache: Path) -> None:
    def ask(training: TrainingSpec = TRAINING) -> Table:
        return kept.estimate_shapes(SMALL, training, machines(A100), COUNTS)

    anew = content(ask())
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-9] ^= 64
    other = content(ask(replace(TRAINING, global_batch=128)))
    foreign = next(one for one in cache.iterdir() if one != path).read_bytes()
    assert other != anew
    texts = whole.replace(b'"out_of_memory"', b'"unknown_links"'), whole.replace(b'"tp"', b'"pp"')
    for damaged in (b"", whole[:40], whole[:-1], bytes(flipped), foreign, *texts):
        assert damaged != whole
        path.write_bytes(damaged)
        assert content(ask()) == anew
        assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "file"))
    table = kept.estimate_shapes(SMALL, TRAINING, machines(A100), COUNTS)
    assert content(table) == content(search.estimate_shapes(SMALL, TRAINING, machines(A100), COUNTS))


def test_the_key_holds_every_file_that_shapes_follow_from() -> None:
    """In a process of its own: whatever is imported or opened on the way is a rule."""
    done = subprocess.run(
        [sys.executable, "-c", _TRACED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    used = {Path(line) for line in done.stdout.splitlines()}
    rules = set(kept.rule_files())
    assert len(used & rules) > 30
    # of the rest: marks of packages, signals at the start, and the version, which is part of the key by itself
    assert {path.relative_to(ROOT).as_posix() for path in used - rules} <= {
        "catalogs/__init__.py", "catalogs/tables/__init__.py", "planner/__init__.py", "planner/version.py",
        "planner/asked/__init__.py", "planner/asked/early.py",
    }  # fmt: skip


_TRACED = """
import sys
from pathlib import Path
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
from catalogs.tables.table import Table
from planner.performance.post_training import spec as tuning
from planner.performance.search import estimate_shapes
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec
nan = float("nan")
machine = {
    "accelerator_count": 8.0, "accelerator_memory_gib": 80.0, "memory_gib": 1152.0, "vcpus": 96.0,
    "intra_node": "nvswitch", "intra_node_gb_per_s": 600.0, "link_domain_accelerators": nan, "internode_gbps": 1600.0,
    "rdma": "infiniband", "local_nvme_gib": nan, "generation": "ampere", "vendor": "nvidia", "memory_gb_per_s": 2039.0,
    "fp32_tflops": 19.5, "tf32_tflops": 156.0, "fp16_tflops": 312.0, "bf16_tflops": 312.0, "fp8_tflops": nan,
    "fp4_tflops": nan, "achievable_bf16_tflops": 271.2, "link_gb_per_s": 600.0, "pcie_gen": 4.0, "trainable": "true",
}
hardware = Table({name: [value] for name, value in machine.items()})
model = ModelSpec("gpt", ModelFamily.TRANSFORMER, 1.3e9, layers=24, hidden=2048, heads=16, ffn=8192, vocab=50257)
lengths = tuning.Lengths(500.0, 1000.0, 2000.0)
vision = ModelSpec("resnet-50", ModelFamily.CNN, 25.6e6, forward_flops_per_sample=8.22e9, activations_per_sample=1.1e7)
runs = [
    (model, TrainingSpec(64, 2048, "bf16")), (vision, TrainingSpec(256, 1, "fp16")),
    (model, TrainingSpec(64, 2048, "bf16", lora_rank=16)),
    (model, TrainingSpec(64, 2048, "bf16", tuning=tuning.Tuning(rollouts=tuning.Rollouts(lengths, lengths)))),
    (model, TrainingSpec(64, 2048, "bf16", tuning=tuning.Tuning(requests=tuning.Requests(lengths, lengths)))),
]
for one, training in runs:
    estimate_shapes(one, training, hardware, [1, 2])
root = Path.cwd()
for module in list(sys.modules.values()):
    opened.add(str(getattr(module, "__file__", None)))
for name in opened:
    path = Path(name)
    if path.is_absolute() and path.is_relative_to(root) and path.suffix in (".py", ".csv", ".json"):
        if not any(part.startswith(".") for part in path.relative_to(root).parts):
            print(path)
"""
