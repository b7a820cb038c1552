"""The compiled copy of a workload changes the time a run takes, and nothing else."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from pydantic import BaseModel

from catalogs.store import cache as catalog_cache
from planner.asked.options import Options
from planner.errors import InputError
from planner.inputs import compiled
from planner.inputs.faults import Fault
from planner.inputs.load import LoadedWorkload, UnreadSource, load_workload
from planner.inputs.schema import Workload
from planner.inputs.view import SectionView, encode_section
from planner.inputs.yaml12 import parse_yaml
from planner.job.overrides import override
from planner.workloads.answer import optimize

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(
    path for path in (ROOT / "examples").glob("*.yaml") if "workload.v1.json" in path.read_text("utf-8")
)
# a fleet's search is bounded by time, so that two runs may differ
NOW = datetime(2026, 11, 20, tzinfo=UTC)
# Every kind of value a workload may hold.
FULL = """\
version: 1
name: everything
model: {family: transformer, layers: 12, hidden: 768, heads: 12, vocab: 50257, gated_mlp: true}
training:
  tokens: 1e10
  global_batch: 64
  sequence_length: 1024
  method: lora
  lora_rank: 8
  layout: {tensor_parallel: 2, zero_stage: 0}
data: {location: aws/us-east-1, size: 20GB, egress_used_gb: 12.5}
checkpoint: {interval: 90m, restart_time: 00:10:00, export: false}
start: 2026-12-01T08:00+01:00
earliest_start: 2026-12-01
constraints:
  deadline: 2027-01-01
  budget_usd: $5,000.50
  regions: ["eu-*", "us-*"]
  accelerators: {deny: [v100-*]}
  quota: [{provider: aws, quota: L-417A185B, limit: 96}]
preferences: {prefer_regions: [eu-west-1]}
prices:
  overlays: [{provider: aws, change: "-12%"}]
  commitment_share: 0.5
baseline: {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, nodes: 1, price_per_hour_usd: 32.77}
assumptions: {restart_time_s: 120}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for each test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A file that uses every kind of value."""
    path = tmp_path / "full.yaml"
    path.write_text(FULL)
    return path


def _copies(folder: Path) -> list[Path]:
    return sorted(folder.glob("workload-*.json"))


def _from_copy(loaded: LoadedWorkload) -> bool:
    return isinstance(loaded.source, UnreadSource)


def _differences(path: str, model: Any, view: Any) -> Iterator[str]:
    if not isinstance(model, BaseModel):
        parts = list(model) if isinstance(model, tuple) else []
        if (
            type(model) is not type(view)
            or (not parts and model != view)
            or len(parts) != len(parts and view)
        ):
            yield f"{path}: {model!r} is {view!r}"
        for position, part in enumerate(parts):
            yield from _differences(f"{path}[{position}]", part, view[position])
        return
    names = list(type(model).model_fields)
    if [name for name, _ in model] != [name for name, _ in view] or names != [name for name, _ in view]:
        yield f"{path}: other fields"
    if model.model_fields_set != view.model_fields_set:
        yield f"{path}: other fields given"
    if model.model_dump() != view.model_dump():
        yield f"{path}: other dump"
    for name in names:
        yield from _differences(f"{path}.{name}", getattr(model, name), getattr(view, name))


def _model(path: Path) -> Workload:
    return Workload.model_validate(parse_yaml(path.read_text(), str(path)).data)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_view_and_model_agree_on_every_attribute(path: Path) -> None:
    first, again = load_workload(path), load_workload(path)
    assert not _from_copy(first)
    assert _from_copy(again)
    for loaded in (first, again):
        assert list(_differences(path.stem, _model(path), loaded.workload)) == []
    assert (again.sha256, again.path) == (first.sha256, first.path)


def test_every_kind_of_value_keeps_its_type(full: Path) -> None:
    first, again = load_workload(full), load_workload(full)
    assert _from_copy(again)
    for loaded in (first, again):
        assert list(_differences("full", _model(full), loaded.workload)) == []


def test_a_workload_has_one_type_wherever_it_comes_from(full: Path) -> None:
    kinds = {
        type(load_workload(full, cache=cached).workload)
        for cached in (False, True, True)  # parsed; parsed and copied; from the copy
    }
    assert kinds == {SectionView}


@pytest.mark.parametrize("name", ["bert-large", "onprem-comparison"])
def test_both_give_the_same_plan(name: str) -> None:
    """That a copy equals its file, for every example, is `test_view_and_model_agree_on_every_attribute`."""
    path = next(path for path in EXAMPLES if path.stem == name)
    load_workload(path)
    plans = []
    for cached in (False, True):
        plan = optimize(load_workload(path, cache=cached), Options(NOW)).plan.to_dict()
        plan["proof"]["seconds"] = 0
        plans.append(json.dumps(plan, default=str))
    assert plans[0] == plans[1]


def test_flags_of_the_command_line_replace_values_of_a_view(full: Path) -> None:
    load_workload(full)
    loaded = override(load_workload(full), max_results=3, objective="time", allow_flagged=True)
    assert _from_copy(loaded)
    workload = loaded.workload
    assert (workload.preferences.max_results, workload.preferences.objective) == (3, "time")
    assert workload.constraints.allow_flagged
    assert "allow_flagged" in workload.constraints.model_fields_set
    assert workload.preferences.prefer_regions == ("eu-west-1",)
    assert load_workload(full).workload.preferences.max_results == 5


def test_a_view_is_read_only_and_can_be_compared_and_sent(full: Path) -> None:
    load_workload(full)
    view, other = load_workload(full).workload, load_workload(full).workload
    with pytest.raises(AttributeError, match="read-only"):
        view.name = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="read-only"):
        del view.name
    assert view == other
    assert hash(view) == hash(other)
    assert view != view.model_copy(update={"name": "other"})
    assert pickle.loads(pickle.dumps(view)) == view
    assert "name='everything'" in repr(view)
    assert encode_section(view) == encode_section(load_workload(full, cache=False).workload)


def test_an_edited_file_is_read_anew(full: Path) -> None:
    load_workload(full)
    full.write_text(FULL.replace("name: everything", "name: something"))
    loaded = load_workload(full)
    assert not _from_copy(loaded)
    assert loaded.workload.name == "something"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "[]",
        lambda _: '{"key": "x"}',
        lambda _: "\0\1\2",
        lambda text: text.replace('"everything"', '"something"'),
        lambda text: text.replace('"section": "Training"', '"section": ["Training"]'),
        lambda text: text.replace('"timedelta"', '"interval"'),
        lambda text: "{" * 100_000 + text,
    ],
)
def test_a_damaged_copy_is_ignored_and_replaced(
    full: Path, cache: Path, damage: Callable[[str], str]
) -> None:
    load_workload(full)
    (copy,) = _copies(cache)
    good = copy.read_text()
    copy.write_text(damage(good))
    loaded = load_workload(full)
    assert not _from_copy(loaded)
    assert loaded.workload.name == "everything"
    assert copy.read_text() == good
    assert _from_copy(load_workload(full))


def test_a_copy_with_the_right_sum_but_another_shape_is_ignored(full: Path, cache: Path) -> None:
    load_workload(full)
    (copy,) = _copies(cache)
    stored = json.loads(copy.read_text())
    for wrong in (
        {"section": "Model", "set": [], "values": {}},
        {"section": "Workload", "set": ["x"], "values": {}},
    ):
        stored |= {"workload": wrong, "sha256": compiled._hash(wrong)}
        copy.write_text(json.dumps(stored))
        assert not _from_copy(load_workload(full))


def test_copies_of_other_rules_or_versions_are_not_used(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_workload(full)
    assert _from_copy(load_workload(full))
    monkeypatch.setattr(compiled, "__version__", "999")
    assert not _from_copy(load_workload(full))
    monkeypatch.setattr(compiled, "_RULES", compiled._RULES[1:])
    assert not _from_copy(load_workload(full))


def test_the_rules_in_the_key_exist() -> None:
    assert [name for name in compiled._RULES if not (compiled._PACKAGE / name).is_file()] == []


def test_a_cache_that_cannot_be_written_is_harmless(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(blocked))
    assert load_workload(full).workload == load_workload(full).workload


def test_a_copy_that_cannot_replace_the_old_one_leaves_nothing_behind(
    full: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(Path, "replace", refuse)
    assert load_workload(full).workload.name == "everything"
    assert list(cache.iterdir()) == []


def test_processes_that_write_at_once_do_no_harm(full: Path, cache: Path) -> None:
    code = "import sys; from pathlib import Path; from planner.inputs.load import load_workload\n"
    code += "print(load_workload(Path(sys.argv[1])).workload.name)"
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(full)], stdout=subprocess.PIPE, cwd=ROOT)
        for _ in range(4)
    ]
    assert [process.communicate()[0].strip() for process in running] == [b"everything"] * 4
    assert len(list(cache.iterdir())) == 1
    assert _from_copy(load_workload(full))


def test_files_of_own_offers_are_asked_for_every_time(tmp_path: Path) -> None:
    offers, path = tmp_path / "own.yaml", tmp_path / "w.yaml"
    offers.write_text("")
    path.write_text(FULL.replace("prices:\n", "prices:\n  offers: [own.yaml]\n"))
    load_workload(path)
    loaded = load_workload(path)
    assert _from_copy(loaded)
    assert loaded.offer_paths() == (offers,)
    offers.unlink()
    with pytest.raises(
        InputError, match=r"w\.yaml:\d+:\d+: prices\.offers\[0\]: no such file: own\.yaml\n.*own\.yaml"
    ):
        load_workload(path)


def test_a_later_fault_has_its_place_though_the_file_was_not_parsed(full: Path) -> None:
    fault = Fault(("constraints", "regions", 1), "no such region")
    texts = [str(load_workload(full).error([fault])) for _ in range(2)]
    assert texts[0] == texts[1]
    assert ":18:21: constraints.regions[1]: no such region\n" in texts[0]
    loaded = load_workload(full)
    assert loaded.source.locate(("name",)) == load_workload(full, cache=False).source.locate(("name",))


def test_copies_do_not_pile_up(full: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MAX_COPIES", 3)
    for number in range(5):
        full.write_text(FULL + f"# edit {number}\n")
        load_workload(full)
    assert len(_copies(cache)) == 3


@pytest.mark.parametrize("base", [None, "", "  ", "/somewhere/cache"])
def test_copies_lie_where_the_catalogs_do(base: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled._path("a").parent == catalog_cache._path("a").parent
    monkeypatch.delenv("PLANNER_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if base is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", base)
    usual = Path(platformdirs.user_cache_dir("ml-training-planner", appauthor=False))
    assert compiled._path("a").parent == catalog_cache._path("a").parent == usual
