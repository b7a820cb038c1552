"""What a user sees when a workload is wrong: golden texts, and that nothing ever ends in a traceback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

import planner
from planner.errors import InputError
from planner.inputs import messages as inputs_messages
from planner.inputs.budget_schema import BudgetFile
from planner.inputs.commit_load import load_commit
from planner.inputs.load import load_workload, parse_workload
from planner.inputs.messages import pydantic_faults
from planner.inputs.other_words import KEYS
from planner.inputs.pipeline_load import load_pipeline
from planner.inputs.pipeline_schema import Pipeline
from planner.inputs.portfolio_load import load_portfolio
from planner.inputs.post_training_schema import Inference
from planner.inputs.schedule_load import load_schedule
from planner.inputs.schema import Constraints, Data, OwnedCommitment, Workload
from planner.inputs.serving_load import load_serving
from planner.inputs.serving_schema import Serving
from planner.inputs.tco_load import load_tco
from planner.inputs.training_schema import Layout, Model, Training

FIXTURES = Path(__file__).parents[2] / "fixtures" / "workload"
GOOD = "version: 1\nname: t\nmodel: {preset: llama-3-8b}\ntraining: {tokens: 1e9, global_batch: 64}\n"


def message(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_workload(text, Path("w.yaml"))
    return str(caught.value)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.yaml")), ids=lambda path: path.stem)
def test_golden(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load_workload(Path(path.name))
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(f"{caught.value}\n", encoding="utf-8")
    assert f"{caught.value}\n" == golden.read_text(encoding="utf-8")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("root", [BudgetFile, Pipeline, Serving])
def test_a_key_with_one_possible_value_is_told_with_it(root: type[BaseModel]) -> None:
    with pytest.raises(ValidationError) as caught:
        root.model_validate({"version": 1, "name": "x"})
    faults = [fault.message for fault in pydantic_faults(caught.value.errors(), root)]
    assert any(text.startswith("'kind' is missing: write 'kind: ") for text in faults)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_workload(tmp_path / "none.yaml")


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        load_workload(tmp_path)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "is empty; start with 'version: 1'"),
        (b"# only a comment\n", "is empty"),
        (b"---\n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "is a binary file"),
        (b"version: 1\nname: \x07\n", "w.yaml:2:7: holds the control character U+0007"),
        (b"version: 1\nname: caf\xe9\n", "w.yaml:2: is not UTF-8"),
        ("version: 1".encode("utf-16"), "is encoded as UTF-16"),
        (b"- a\n- b\n", "must be a mapping of keys to values, not a list"),
        (b"hello", "must be a mapping of keys to values, not a single value"),
        (b"version: 1\n---\nversion: 1\n", "w.yaml:2:1: holds a second document"),
        (b"a: " + b"[" * 200_000, "is nested more than"),
        (b"version: [1,\n", "is not valid YAML"),
    ],
)
def test_files_that_are_no_workload(data: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_workload(path)
    assert expected in str(caught.value).replace(f"{tmp_path}{os.sep}", "")


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(InputError, match=r"at most 1,024 KiB; this one is larger"):
        load_workload(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(GOOD)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        load_workload(path)


@pytest.mark.parametrize(
    "load", [load_commit, load_pipeline, load_portfolio, load_schedule, load_serving, load_tco]
)
def test_a_workload_in_place_of_another_file_is_named(load: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(GOOD)
    with pytest.raises(InputError, match=r"is a workload: `planner optimize .*w\.yaml` plans it"):
        load(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_an_endless_file_is_refused() -> None:
    with pytest.raises(InputError, match="at most 1,024 KiB"):
        load_workload(Path("/dev/zero"))


def test_byte_order_mark_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_workload(path).workload.name == "t"


def test_windows_line_ends_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert load_workload(path).workload.name == "t"


def test_faults_come_in_the_order_of_their_lines() -> None:
    text = message(GOOD + "constraints:\n  budget_usd: 0\n  max_nodes: x\nzzz: 1\nfleet: {runs: 0}\n")
    places = [line.split(":")[1] for line in text.splitlines() if line.startswith("w.yaml:")]
    assert places == ["6", "7", "8", "9"]


def test_one_wrong_section_does_not_hide_rules_of_the_others() -> None:
    text = message(
        "version: 1\nname: t\nkind: fleet\nmodel: {preset: lama-3-8b}\n"
        "training: {epochs: 1, global_batch: x}\nconstraints: {providers: []}\n"
    )
    assert "did you mean 'llama-3-8b'?" in text
    assert "must be a whole number" in text
    assert "an empty list allows nothing" in text
    assert "fleet needs a 'fleet' section" in text


def test_a_misspelt_required_key_is_reported_once() -> None:
    text = message(
        "version: 1\nname: t\nmodel: {preset: bert-large}\ntraining: {tokens: 1, global_bach: 2}\n"
    )
    assert "did you mean 'global_batch'?" in text
    assert "is missing" not in text


def test_many_faults_are_cut() -> None:
    text = message(GOOD + "".join(f"key{i}: 1\n" for i in range(80)))
    assert text.splitlines()[-1] == "... and 30 more faults"


def test_near_words_are_sought_for_shown_faults_only(monkeypatch: pytest.MonkeyPatch) -> None:
    sought: list[str] = []
    monkeypatch.setattr(inputs_messages, "near", lambda word, known: sought.append(word) or "")
    text = message(GOOD + "".join(f"key{i}: 1\n" for i in range(2_000)))
    assert text.splitlines()[-1] == "... and 1950 more faults" and 50 <= len(sought) <= 100


def test_long_lines_are_cut_around_the_place() -> None:
    text = message(GOOD + "description: {a: " + "x" * 5000 + "}\n" + f"{'y' * 300}: 1\n")
    assert max(len(line) for line in text.splitlines()) < 500


def test_messages_cannot_steer_a_terminal() -> None:
    text = message(GOOD + '"\\e[31mred\\u202e": "\\e[2J"\nkind: "\\e]0;x"\n')
    assert all(char.isprintable() or char == "\n" for char in text)


def test_later_faults_find_their_place() -> None:
    from planner.inputs.faults import Fault

    loaded = parse_workload(GOOD + "constraints:\n  regions: [aws/us-esat-1]\n", Path("w.yaml"))
    error = loaded.error([Fault(("constraints", "regions", 0), "no such region", "aws/us-east-1")])
    assert str(error).splitlines() == [
        "w.yaml:6:13: constraints.regions[0]: no such region (did you mean 'aws/us-east-1'?)",
        "    regions: [aws/us-esat-1]",
        "              ^^^^^^^^^^^^^",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("version: 2", "must be 1, got 2"),
        ("name: ''", "must not be empty"),
        ("kind: batch", "must be one of training, fleet or inference, got 'batch'"),
        ("model: llama-3-8b", "must be a section of keys and values, got 'llama-3-8b'"),
        ("model: [a]", "must be a section of keys and values, got a list"),
        ("constraints: {accelerators: [h100]}", "got a list; its keys: allow, deny"),
        ("constraints: {allow: [h100-*]}", "it belongs under 'accelerators' or 'instance_types'"),
        ("checkpoint: {keep: 0}", "must be at least 1, got 0"),
        ("checkpoint: {keep: 1.5}", "must be a whole number, got 1.5"),
        ("checkpoint: {keep: true}", "must be a whole number, got true"),
        ("checkpoint: {interval: 30}", "write '30h' for hours"),
        (
            "checkpoint: {export: off}",
            "must be true or false, got 'off' (YAML 1.2 knows only true and false)",
        ),
        ("data: {size: -5GB}", "must be more than zero, got '-5GB'"),
        ("data: {size: 100}", "is only 100 bytes; write a unit (did you mean '100GB'?)"),
        ("data: {egress_used_gb: -1}", "must be at least 0, got -1"),
        ("data: {egress_used_gb: .nan}", "must be"),
        ("start: tomorrow", "is not a date: 'tomorrow'"),
        ("start: 2026-13-01", "is not a date: '2026-13-01'"),
        ("earliest_start: 2026-12-01T10:00", "must be a date without time"),
        ("constraints: {deadline: 2026-02-30}", "is not a date"),
        ("constraints: {deadline: 0h}", "longer than zero"),
        ("constraints: {deadline: soon}", "a deadline may also be a date"),
        ("constraints: {budget_usd: 0}", "must be more than zero"),
        ("constraints: {deadline_confidence: 90}", "not percent: write 0.9 instead of 90"),
        ("constraints: {deadline_confidence: 90%}", "not percent: write 0.9"),
        ("constraints: {deadline_confidence: 1}", "must be below 1"),
        ("constraints: {deadline_confidence: 0}", "must be a ratio above 0"),
        ("constraints: {purchase_options: spot}", "must be a list: write [spot]"),
        ("constraints: {purchase_options: [sopt]}", "did you mean 'spot'?"),
        ("constraints: {quota: [{provider: aws}]}", "'quota' is missing"),
        ("constraints: {accelerators: {allowed: [a]}}", "did you mean 'allow'?"),
        ("constraints: {regions: [a/b/c]}", "must be region or provider/region"),
        ("training2: {}", "did you mean 'training'?"),
        ("budget: 3", "it belongs under 'constraints'"),
        ("layers: 3", "it belongs under 'model'"),
        ("constraints: {budget_usd: $5,000}", "write numbers without commas, as in 5000 or 5_000"),
        ("constraints: {providers: aws, gcp}", "write a list in brackets, as in [a, gcp]"),
        ("constraints: {frobnicate: }", "as in [a, frobnicate]; known here: deadline,"),
        ("layers:", "it belongs under 'model'"),
        ("constraints: {deadline: 2 months}", "(months and years differ in length)"),
        ("constraints: {spot: false}", "write exclude_purchase_options: [spot]"),
        ("owned: [{accelerator: h100}]", "are described in a file under prices.offers"),
        ("cluster: {nodes: 4}", "baseline names today's cluster"),
        ("region: eu-west-1", "that of the data with data.location"),
        ("preferences: {purchase: [spot]}", "write purchase_options under 'constraints'"),
        ("preferences: {spot: false}", "exclude_purchase_options: [spot] under 'constraints'"),
        ("constraints: {credits: 10000}", "what is left as budget_usd"),
        ("constraints: {max_gpus: 8}", "did you mean 'max_accelerators'?"),
        ("constraints: {max_hours: 24}", "did you mean 'deadline'?"),
        ("data: {bucket: s3://x}", "write location, such as aws/us-east-1"),
        ("constraints: {gpus: 8}", "did you mean 'max_accelerators'?"),
        ("constraints: {gpus: [h100]}", "did you mean 'accelerators'?"),
        ("constraints: {quota: {h100: 16}}", "keys of each item: provider, region, quota"),
        ("constraints: {accelerators: [h100, a100]}", "write {allow: [h100, a100]}"),
        ("model: llama-3-8b", "write {preset: llama-3-8b}"),
        ("checkpoint: {initial: 16}", "is only 16 bytes; write a unit (did you mean '16GB'?)"),
        ("prices: {overlays: [{change: 12 percent}]}", "must be like '-12%', '+0.40' or '3.20'"),
        (
            "kind: inference\ninference: {engine_version: newest}",
            "must be a release like '0.10.1', got 'newest'",
        ),
        ("run: {secrets: [1a]}", "must be a name of letters, digits and _"),
        ("run: {image: a b}", "must be one word without spaces, got 'a b'"),
        ("assumptions: {a: yes}", "must be a number, got 'yes'"),
    ],
)
def test_single_faults(line: str, expected: str) -> None:
    key = line.split(":")[0]
    base = "".join(f"{part}\n" for part in GOOD.splitlines() if not part.startswith(f"{key}:"))
    text = message(base + line + "\n")
    assert expected in text
    assert "^" in text


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_workload_or_an_input_error(text: str) -> None:
    try:
        parse_workload(text, Path("w.yaml"))
    except InputError as error:
        assert str(error)


_SCALARS = st.sampled_from(
    [
        "1",
        "-1",
        "0",
        "1e400",
        ".nan",
        ".inf",
        "x",
        "true",
        "[]",
        "{}",
        "[1, {a: b}]",
        "3h",
        "90",
        "'",
        "~",
        "\u2028",
    ]
)
_PATHS = st.sampled_from(sorted(Workload.model_fields))


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_PATHS, _SCALARS, max_size=8))
def test_any_values_are_a_workload_or_an_input_error(parts: dict[str, str]) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in parts.items())
    try:
        parse_workload(text, Path("w.yaml"))
    except InputError as error:
        assert str(error)


_SECTION_KEYS = st.sampled_from(
    [
        *("training.layout", "training.epochs", "training.global_batch", "data.size", "data.samples"),
        *("constraints.deadline", "constraints.quota", "constraints.accelerators", "data.location"),
        *("constraints.min_throughput", "model.heads", "model.hidden", "model.experts", "model.preset"),
        *("model.family", "fleet.runs", "prices.overlays"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_SECTION_KEYS, _SCALARS), max_size=6, unique_by=lambda item: item[0]))
def test_any_section_values_are_a_workload_or_an_input_error(parts: list[tuple[str, str]]) -> None:
    sections: dict[str, list[str]] = {"model": [], "training": []}
    for key, value in parts:
        section, _, name = key.partition(".")
        sections.setdefault(section, []).append(f"  {name}: {value}\n")
    text = "version: 1\nname: t\n" + "".join(f"{s}:\n{''.join(lines)}" for s, lines in sections.items())
    try:
        parse_workload(text, Path("w.yaml"))
    except InputError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("root", "text", "said"),
    [
        (Pipeline, "tasks: []", "tasks: is an empty list: give at least 1 item (The tasks, in any order)"),
        (BudgetFile, "budgets: []", "budgets: is an empty list: give at least 1 item (The budgets)"),
        (
            Serving,
            "buckets: []",
            "buckets: is an empty list: give at least 1 item (Size classes of requests)",
        ),
    ],
)
def test_an_empty_list_says_what_belongs_there(root: type[BaseModel], text: str, said: str) -> None:
    key = text.split(":")[0]
    with pytest.raises(ValidationError) as caught:
        root.model_validate({key: ()})
    (fault,) = [fault for fault in pydantic_faults(caught.value.errors(), root) if fault.path == (key,)]
    assert f"{key}: {fault.message}" == said


def test_a_list_of_wrong_items_is_not_called_empty() -> None:
    with pytest.raises(ValidationError) as caught:
        BudgetFile.model_validate(
            {"version": 1, "kind": "budget", "budgets": ({"name": "all", "amount": 0},)}
        )
    faults = pydantic_faults(caught.value.errors(), BudgetFile)
    assert [(fault.path, fault.message) for fault in faults] == [
        (("budgets", 0, "amount"), "must be more than zero, got 0")
    ]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("gradient_accumulation_steps: 8", "samples per device x accumulation x devices"),
        ("learning_rate: 1e-4", "leave it out"),
        ("num_train_epochs: 3", "are 'epochs'"),
        ("optimizer: adamw_torch_fused", "did you mean 'adamw'?"),
        ("objective: fine-tune", "did you mean 'sft'?"),
        ("precision: mixed", "did you mean 'bf16'?"),
        ("lengths: 512", "write {mean: 512}"),
        ("lengths: {mean: 300, max: 4k}", "write '4e3', or '4096' where k is 1,024"),
    ],
)
def test_words_of_trainers_are_answered_with_ours(key: str, expected: str) -> None:
    assert expected in message(GOOD.replace("global_batch: 64", f"global_batch: 64, {key}"))


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_other_word_stands_for_a_key_that_a_section_has(key: str) -> None:
    sections = [Workload, Constraints, Training, Model, Data, Layout, Inference]
    assert any(KEYS[key] in section.model_fields for section in (*sections, OwnedCommitment))
    assert not any(key in section.model_fields for section in sections)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.py", "from trl import SFTTrainer\n"), ("run.sh", "torchrun train.py --model x\n"),
        ("qlora.yml", "base_model: a/b\nadapter: qlora\n"), ("config.json", '{"model_type": "llama"}'),
        ("args.yaml", "task: detect\nmode: train\nimgsz: 640\n"), ("run.toml", "[model]\nname = 'x'\n"),
    ],
)  # fmt: skip
def test_a_trainer_s_file_is_led_to_the_command_that_reads_it(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"is not a workload; if you train with it, planner init --from .* makes one"
    ):
        load_workload(path)
    with pytest.raises(InputError, match=r"is not a workload; if you train with it"):
        planner.validate(path)


def test_a_trainer_s_key_in_a_workload_without_version_is_a_misplaced_key() -> None:
    text = "model: {preset: gpt2}\ntraining: {steps: 10, global_batch: 8}\noptimizer: adamw\n"
    with pytest.raises(InputError) as caught:
        parse_workload(text, Path("w.yaml"))
    said = str(caught.value)
    assert "'version' is missing" in said and "unknown key 'optimizer': it belongs under 'training'" in said
    assert "init --from" not in said
