"""Bad input of every kind: a clear message, the right exit code, nothing on stdout, no traceback."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, CliResult, Run

BASE = """version: 1
name: small
model: {preset: bert-base}
training: {samples: 1e6, global_batch: 256, sequence_length: 128}
"""

OWNED = (
    "commitments: [{{provider: {}, region: {}, instance_type: {}, purchase_option: reserved_1y, nodes: 2}}]\n"
)


def refused(done: CliResult, code: int, *words: str) -> None:
    assert done.code == code, (done.code, done.stdout[:300], done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.fixture
def optimize(run_cli: Run, tmp_path: Path) -> Callable[[str], CliResult]:
    def optimize(text: str) -> CliResult:
        path = tmp_path / "w.yaml"
        path.write_text(text, encoding="utf-8")
        return run_cli("optimize", str(path), "--as-of", "2026-11-20")

    return optimize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty"]),
        ("# only a remark\n", ["is empty"]),
        ("7\n", ["mapping"]),
        ("- a\n- b\n", ["mapping"]),
        ("a: [1, 2\n", ["w.yaml:"]),
        (BASE + "name: again\n", ["w.yaml:5:1", "given twice"]),
        (BASE + "constraint: {}\n", ["w.yaml:5:1", "did you mean 'constraints'"]),
        (BASE + "constraints: {max_nodes: two}\n", ["w.yaml:5:26", "whole number", "^^^"]),
        (BASE + "constraints: {max_nodes: 0}\n", ["max_nodes"]),
        (BASE + "constraints: {deadline: 5}\n", ["needs a unit"]),
        (BASE + "constraints: {deadline: 2020-01-01}\n", ["deadline", "past"]),
        (BASE + "constraints: {deadline: -5h}\n", ["deadline"]),
        (BASE + "constraints: {budget_usd: -5}\n", ["budget_usd"]),
        (BASE + "constraints: {deadline_confidence: 95%}\n", ["0.95"]),
        (BASE + "data: {size: -5GB}\n", ["data.size", "more than zero"]),
        (BASE + "data: {size: .nan}\n", ["data.size"]),
        (BASE + "start: 2026-12-01\nconstraints: {deadline: 2026-11-25}\n", ["deadline"]),
        (BASE.replace("bert-base", "bert-bass"), ["w.yaml:3:17", "did you mean 'bert-base'"]),
        (BASE.replace("1e6", "-1e6"), ["training.samples"]),
        (BASE.replace("256", "0"), ["global_batch"]),
        (BASE.replace("version: 1", "version: 2"), ["version"]),
        (BASE + "constraints: {purchase_options: [sopt]}\n", ["did you mean 'spot'"]),
        (BASE + "assumptions: {restart_times: 5}\n", ["did you mean 'restart_time_s'"]),
        (BASE + "assumptions: {restart_time_s: -5}\n", ["outside"]),
        (BASE + "prices: {offers: [nowhere.yaml]}\n", ["w.yaml:5:19", "no such file"]),
        (BASE + "prices: {offers: [w.yaml]}\n", ["w.yaml"]),
        (BASE + "prices: {overlays: [{provider: aws, change: cheap}]}\n", ["change"]),
        (BASE + "constraints: {deadline: 31.12.2026}\n", ["w.yaml:5:25", "write the date as year-month-day"]),
        (
            BASE + "constraints: {deadline: 12/31/2026}\n",
            ["write the date as year-month-day, like 2026-12-31"],
        ),
        (BASE + "start: Dec 31 2026\n", ["w.yaml:5:8", "write the date as year-month-day, like 2026-12-31"]),
        (BASE + "constraints: {deadline: 3 months}\n", ["months and years differ in length"]),
        (BASE + "constraints: {software: trainium}\n", ["w.yaml:5:15", "did you mean 'neuron'"]),
        (BASE + "spot: false\n", ["w.yaml:5:7", "got false", "exclude_purchase_options: [spot]"]),
        (
            BASE + OWNED.format("aws", "us-east-1", "p4d.48xlarge"),
            ["w.yaml:5:65", "commitments[0].instance_type", "did you mean 'p4d.24xlarge'"],
        ),
        (
            BASE + OWNED.format("aws", "us-east-l", "p4d.24xlarge"),
            ["w.yaml:5:39", "commitments[0].region", "did you mean 'us-east-1'"],
        ),
        (
            BASE + OWNED.format("asw", "us-east-1", "p4d.24xlarge"),
            ["w.yaml:5:26", "commitments[0].provider", "did you mean 'aws'"],
        ),
    ],
)
def test_a_wrong_file_is_told_with_its_place(
    optimize: Callable[[str], CliResult], text: str, words: list[str]
) -> None:
    refused(optimize(text), 2, "w.yaml" if "w.yaml" in " ".join(words) else "", *words)


@pytest.mark.parametrize(
    ("limits", "meant"),
    [
        ("regions: [us-esat-1]", "did you mean"),
        ("regions: [aws/us-eas-1]", "did you mean 'aws/us-east-1'"),
        ("providers: [awss]", "did you mean 'aws'"),
        ("accelerators: {allow: [a100-40gb-smx]}", "did you mean 'a100-40gb-sxm'"),
        ("accelerators: {deny: [a1000]}", "no accelerator called 'a1000'"),
        ("instance_types: {allow: [p4d.25xlarge]}", "did you mean 'p4d.24xlarge'"),
        ("residency: [eux]", "did you mean 'eu'"),
    ],
)
def test_an_unknown_name_is_never_an_empty_result(
    optimize: Callable[[str], CliResult], limits: str, meant: str
) -> None:
    refused(optimize(BASE + f"constraints: {{{limits}}}\n"), 2, "w.yaml:5:", meant)


@pytest.mark.parametrize(
    "quota", ["{provider: awsx, quota: p4d, limit: 5}", "{provider: aws, quota: L-XXX, limit: 5}"]
)
def test_an_unknown_quota_is_told(optimize: Callable[[str], CliResult], quota: str) -> None:
    refused(optimize(BASE + f"constraints: {{quota: [{quota}]}}\n"), 2, "quota")


def test_a_list_of_sections_is_answered_with_how_it_is_written(run_cli: Run) -> None:
    for command in ("optimize", "explain", "frontier"):
        done = run_cli(command, str(ROOT / "examples" / "bert-large.yaml"), "--details", "cost, time")
        refused(done, 2, "--details cost --details time")


def test_an_unknown_place_or_machine_of_the_user_is_told(optimize: Callable[[str], CliResult]) -> None:
    refused(optimize(BASE + "data: {size: 1GB, location: us-east-1}\n"), 2, "location")
    refused(
        optimize(BASE + "data: {size: 1GB, location: amazon/us-east-1}\n"), 2, "location", "provider/region"
    )
    machine = "{provider: aws, region: us-east-1, instance_type: p4d.23xlarge, nodes: 1"
    refused(optimize(BASE + f"baseline: {machine}}}\n"), 2, "did you mean 'p4d.24xlarge'")
    refused(optimize(BASE + f"commitments: [{machine}, purchase_option: reserved_1y}}]\n"), 2, "p4d.23xlarge")


def test_a_misspelt_region_of_the_data_is_told(optimize: Callable[[str], CliResult]) -> None:
    refused(
        optimize(BASE + "data: {size: 1GB, location: aws/us-esat-1}\n"), 2, "did you mean 'aws/us-east-1'"
    )


def test_a_region_of_the_data_that_may_be_newer_than_the_catalog_is_planned_with(
    optimize: Callable[[str], CliResult],
) -> None:
    assert optimize(BASE + "data: {size: 1GB, location: aws/us-east-9}\n").code == 0


def test_several_faults_are_told_at_once(optimize: Callable[[str], CliResult]) -> None:
    text = BASE.replace("bert-base", "bert-bass") + "constraints: {max_nodes: two, deadline: 5}\n"
    refused(optimize(text), 2, "bert-bass", "max_nodes", "deadline")


def test_files_that_are_no_workload(run_cli: Run, tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(bytes(range(256)) * 20)
    wide = tmp_path / "utf16.yaml"
    wide.write_text(BASE, encoding="utf-16")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"version: 1\nname: caf\xe9\n")
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(50 * 2**20)
    for path, words in (
        (binary, "binary"), (wide, "UTF-16"), (latin, "latin.yaml:2"), (huge, "is larger"), (tmp_path, "folder"),
        (tmp_path / "none.yaml", "no such file"), (binary / "below.yaml", "cannot be read"),
    ):  # fmt: skip
        for command in ("optimize", "explain"):
            refused(run_cli(command, str(path)), 2, words, str(path))


@pytest.mark.parametrize(
    "args",
    [
        ("--as-of", "yesterday"), ("-o", "pdf"), ("--max-results", "0"), ("--time-limit", "soon"), ("--gap", "7"),
        ("--objective", "joy"), ("--solver", "guess"), ("--max-age", "-1"), ("--no-such-flag",),
    ],
)  # fmt: skip
def test_wrong_flags_are_usage_errors(run_cli: Run, args: tuple[str, ...]) -> None:
    refused(run_cli("optimize", str(ROOT / "examples" / "bert-large.yaml"), *args), 2, args[0])


@pytest.mark.parametrize(
    "args",
    [
        ("optimize", "{}"), ("optimize", f"{ROOT}/examples/bert-large.yaml", "--set", "{}"), ("catalog", "show", "{}"),
        ("optimize", "w.yaml", "--as-of", "{}"), ("optimize", "--{}"), ("{}",), ("schema", "{}"),
    ],
)  # fmt: skip
def test_of_a_long_argument_the_two_ends_are_quoted(run_cli: Run, args: tuple[str, ...]) -> None:
    long = f"begins{'x' * 5000}\x1b[2Jends"
    done = run_cli(*(arg.format(long) for arg in args))
    assert done.code == 2
    assert "begins" in done.stderr and "ends" in done.stderr and "\x1b" not in done.stderr
    assert max(len(word.strip("'\"():.")) for word in done.stderr.split()) <= 200


def test_a_long_path_is_quoted_whole(run_cli: Run) -> None:
    path = "/".join(["", *["folder" * 5] * 20, "w.yaml"])
    done = run_cli("optimize", path)
    assert done.code == 2 and path in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("optimize", "w.yaml", "--certificate"),
        ("portfolio", "jobs.yaml", "--certificate"),
        ("commit", "question.yaml", "--certificate"),
        ("calibrate", "w.yaml", "run.csv", "--out"),
        ("size", "--data", "100GB", "--goal", "train", "--write"),
        ("advise", "plan.json", "--record"),
    ],
)
def test_a_file_beside_the_answer_is_not_standard_output(
    run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)  # they made a file called "-"
    refused(run_cli(*args, "-"), 2, args[-1], "name a file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", ["missing/plan.json", "."])
def test_a_place_that_cannot_be_written_is_told(run_cli: Run, tmp_path: Path, where: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(BASE, encoding="utf-8")
    target = str(tmp_path / where)
    refused(run_cli("optimize", str(path), "-o", "json", "--out", target), 2, str(tmp_path))


def test_a_catalog_that_cannot_be_read_is_told(
    run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(BASE, encoding="utf-8")
    empty, broken, cut = tmp_path / "empty", tmp_path / "broken", tmp_path / "cut"
    empty.mkdir()
    (broken / "aws").mkdir(parents=True)
    (broken / "aws" / "manifest.json").write_text("{", encoding="utf-8")
    shutil.copytree(ROOT / "catalogs" / "data" / "snapshot" / "lambda", cut / "lambda")
    offers = cut / "lambda" / "offers.csv.gz"
    offers.write_bytes(offers.read_bytes()[:-20])
    places = {
        tmp_path / "nowhere": "nowhere",
        empty: "no provider",
        broken: "manifest.json",
        cut: "offers.csv.gz",
    }
    for place, words in places.items():
        monkeypatch.setenv("PLANNER_CATALOG_DIR", str(place))
        for command in ("optimize", "explain"):
            refused(run_cli(command, str(path)), 4, words)


def test_bad_input_in_a_process_of_its_own(run_process: Run, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(BASE + "constraints: {max_nodes: two}\n", encoding="utf-8")
    refused(run_process("optimize", str(path)), 2, "w.yaml:5:26")
    refused(run_process("optimize", str(tmp_path)), 2, "folder")
    nowhere = {"PLANNER_CATALOG_DIR": str(tmp_path / "nowhere")}
    refused(run_process("optimize", str(ROOT / "examples" / "bert-large.yaml"), env=nowhere), 4, "nowhere")


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("regions: [eu]", "it names a group of regions: write residency: [eu]"),
        ("regions: [frankfurt]", "aws/eu-central-1"),
        ("regions: [us-east]", "(did you mean 'us-east"),  # not the US-East of a GovCloud
        ("residency: [germany]", "a country by its two letters, such as de"),
    ],
)
def test_a_place_in_other_words_is_answered_with_how_it_is_written(
    optimize: Callable[[str], CliResult], limits: str, said: str
) -> None:
    refused(optimize(BASE + f"constraints: {{{limits}}}\n"), 2, said)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            ("estimate", "FILE", "--instance-type", "h100"),
            ["it is an accelerator: name a machine", "p5.48xlarge"],
        ),
        (("estimate", "FILE", "--instance-type", "p4d.24xlarg"), ["did you mean 'p4d.24xlarge'?"]),
        (
            ("estimate", "FILE", "--instance-type", "p4d.24xlarge", "--provider", "asw"),
            ["did you mean 'aws'?"],
        ),
        (
            ("compare", "FILE", "--pick", "p4d.24xlarge,a100"),
            ["--pick a100", "it is an accelerator: name a machine"],
        ),
        (("compare", "FILE", "--pick", "nonsense"), ["--pick nonsense", "`planner catalog list` shows them"]),
        (("optimize", "FILE", "--quote", "95"), ["write it as 95% or 0.95"]),
        (
            ("size", "--data", "100", "--goal", "image_classification"),
            ["--data 100: is 100 bytes", "'100GB'"],
        ),
        (("size", "--data", "9GB", "--goal", "image_classification", "--deadline", "5"), ["--deadline 5: "]),
        (
            ("size", "--data", "0GB", "--goal", "image_classification"),
            ["--data 0GB: must be at least one byte"],
        ),
    ],
)
def test_options_are_answered_with_what_to_write(
    line: tuple[str, ...], words: list[str], run_cli: Run, tmp_path: Path
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(BASE, encoding="utf-8")
    done = run_cli(*(str(path) if word == "FILE" else word for word in line))
    assert done.code == 2 and done.stdout == "", done.stderr
    for word in words:
        assert word in done.unwrapped or word in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("command", "kind"), [("pipeline", "portfolio"), ("tco", "sweep"), ("portfolio", "budget")]
)
def test_a_file_of_another_question_names_its_command(
    command: str, kind: str, run_cli: Run, tmp_path: Path
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(f"version: 1\nkind: {kind}\nname: x\n", encoding="utf-8")
    refused(
        run_cli(command, str(path)), 2, f"is a {kind} file, not a {command} file: use `planner {kind} {path}`"
    )


@pytest.mark.parametrize(
    "command", ["portfolio", "commit", "tco", "pipeline", "schedule", "serving", "budget"]
)
def test_files_of_other_commands_and_empty_ones_are_named(command: str, run_cli: Run, tmp_path: Path) -> None:
    """One sentence with the command to use, instead of a fault for each key that is unknown here."""
    more = ("--daily", str(ROOT / "examples/daily-costs.csv")) if command == "budget" else ()
    other = ROOT / "examples" / ("portfolio.yaml" if command != "portfolio" else "commit.yaml")
    refused(run_cli(command, str(other), *more), 2, f"not a {command} file: use `planner {other.stem} ")
    empty = tmp_path / "empty.yaml"
    empty.touch()
    refused(
        run_cli(command, str(empty), *more),
        2,
        f"is empty; start with 'version: 1' ('planner schema {command}'",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("100%", "'100%' must be below 100 %"), ("150%", "'150%' must be below 100 %"),
        ("1", "'1' is not a ratio; write it as 1% or 0.01"), ("nan", "'nan' is not a ratio"),
    ],
)  # fmt: skip
def test_a_certain_outcome_has_no_worst_part(given: str, said: str, run_cli: Run) -> None:
    refused(run_cli("portfolio", str(ROOT / "examples/robust.yaml"), "--robust", given), 2, said)


@pytest.mark.parametrize("given", [("--location", "us-east-1"), ("--deadline", "2020-01-01")])
def test_size_names_the_option_and_no_file_that_nobody_wrote(given: tuple[str, str], run_cli: Run) -> None:
    done = run_cli("size", "--data", "100GB", "--goal", "image_classification", *given)
    refused(done, 2, f"{' '.join(given)}: ")
    assert "workload.yaml" not in done.stderr
