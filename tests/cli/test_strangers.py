"""What users without the documentation at hand type first: amounts with signs, names and keys of their own."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from pydantic import ValidationError

from planner.commands import optimize as optimize_command
from planner.inputs.load import load_workload
from planner.inputs.portfolio_schema import PortfolioJob
from planner.workloads.size import Judged
from planner.workloads.size_rules import load_rules
from tests.cli import test_schedule
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.catalog("small")
DAY = ("--as-of", "2026-11-20")
RESNET = ROOT / "examples" / "resnet50-imagenet.yaml"
TCO = """\
version: 1
kind: tco
name: desk
machine:
  accelerator: rtx4090-24gb-pcie
  accelerators: 2
  power_kw: 1.2
  parts: [{name: workstation, usd: "$6,500"}]
own_site: {usd_per_kwh: 32 ct}
utilisation_ratio: 40%
"""
QUOTES = """\
instance_type,provider,region,accelerator,accelerator_count,vcpus,memory_gib,nodes,price_per_hour,currency,purchase_option
p5.48xlarge,aws,us-west-2,h100-80gb-sxm,8,192,2048,4,31.46,USD,capacity_block
"""


def test_a_budget_of_an_option_is_written_as_in_a_file(
    run_cli: Run, asked_once: Callable[[str], None]
) -> None:
    asked_once("planner.workloads.size.size_workload")  # anew where it is another budget
    asked = ("size", "--data", "100GB", "--goal", "image_classification", *DAY, "-o", "json", "--budget")
    plain, signed = (json.loads(run_cli(*asked, usd).stdout) for usd in ("5000", "$5,000"))
    assert plain["outcome"] == signed["outcome"]
    refused = run_cli(*asked, "5k")
    assert refused.code == 2
    assert "is not an amount in US dollars: '5k'; write like 5000 or 5000.50" in refused.stderr


def test_a_size_that_is_written_says_how_its_file_is_planned(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    found = run_cli("size", "--data", "100GB", "--goal", "Image Classification", "--write", path, *DAY)
    assert found.code == 0, found.stderr
    assert f"planner optimize {path}" in found.unwrapped.replace("\n", "")
    assert "type: image_classification" in path.read_text()


def test_a_need_just_beside_a_rule_does_not_refute_it() -> None:
    rule = load_rules()[0]
    assert not Judged(rule, 200.0, 300.0, 199.0).differs
    assert not Judged(rule, 200.0, 300.0, 310.0).differs
    assert Judged(rule, 200.0, 300.0, 180.0).differs
    assert Judged(rule, 200.0, 300.0, 330.0).differs
    assert not Judged(rule, 200.0, None, 1e9).differs


def test_an_ending_of_another_programs_document_is_answered_with_ours(run_cli: Run, tmp_path: Path) -> None:
    found = run_cli("optimize", RESNET, *DAY, "--out", tmp_path / "plan.pdf")
    assert found.code == 2
    assert "no format is written as .pdf" in found.stderr and "html" in found.stderr
    assert not (tmp_path / "plan.pdf").exists()


@pytest.mark.parametrize("mark", [";", "\t"])
def test_tables_of_other_spreadsheets_are_read(run_cli: Run, tmp_path: Path, mark: str) -> None:
    ours, theirs = (tmp_path / name for name in ("ours", "theirs"))
    for folder in (ours, theirs):
        folder.mkdir()
    question = test_schedule.write(ours)
    for path in ours.iterdir():
        text = path.read_text()
        (theirs / path.name).write_text(
            text if path.suffix == ".yaml" else text.replace(",", mark), newline="\r\n"
        )
    asked = ("-o", "json", "--reproducible")
    answers = [run_cli("schedule", path, *asked) for path in (question, theirs / "schedule.yaml")]
    assert [answer.code for answer in answers] == [0, 0], answers[1].stderr
    totals = [json.loads(answer.stdout)["total_usd"] for answer in answers]
    assert totals[0] == totals[1]
    (tmp_path / "own.csv").write_text(QUOTES.replace("p5.48xlarge", "my-p5").replace(",", mark))
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(RESNET.read_text()), "prices": {"offers": ["own.csv"]}}))
    assert run_cli("validate", path).code == 0


def test_a_list_given_as_allowed_names_is_answered_with_the_list(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    constraints = {"providers": {"allow": ["gcp", "aws"]}}
    path.write_text(yaml.safe_dump({**yaml.safe_load(RESNET.read_text()), "constraints": constraints}))
    assert "constraints.providers: must be a list: write [gcp, aws]" in run_cli("validate", path).stderr


@pytest.mark.parametrize("words", ["0abc", f"0{' ' * 200_000}!"])
def test_other_words_behind_a_zero_are_no_time(words: str) -> None:
    """The second took minutes."""
    with pytest.raises(ValidationError, match="is not a duration"):
        PortfolioJob.model_validate({"name": "a", "workload": "w.yaml", "submitted": words})


@pytest.mark.parametrize("words", ["0h", "0 d", 0, "0", " 0.0 weeks "])
def test_a_job_may_be_submitted_at_the_start(words: object) -> None:
    known = PortfolioJob.model_validate({"name": "a", "workload": "w.yaml", "submitted": words})
    assert known == PortfolioJob.model_validate({"name": "a", "workload": "w.yaml"})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("schedule", "schedule"), ("serving", "serving"), ("commit", "commit"), ("budgets", "budget"),
        ("sweep", "sweep"), ("onprem-machines", "machines"), ("tco-2x4090", "tco"),
    ],
)  # fmt: skip
def test_files_of_every_question_are_validated(
    run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    path = ROOT / "examples" / f"{name}.yaml"
    found = run_cli("validate", path, "-o", "json")
    assert found.code == 0, found.stderr
    said = json.loads(found.stdout)
    assert (said["kind"], said["sha256"]) == (kind, hashlib.sha256(path.read_bytes()).hexdigest())
    with monkeypatch.context() as piped:
        piped.setattr(
            "sys.stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes()), isatty=lambda: False)
        )
        refused = run_cli("validate", "-")
        assert (refused.code, f"standard input holds a {kind} file" in refused.stderr) == (2, True)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(f"{path.read_text()}\nnonsense: 1\n")
    refused = run_cli("validate", wrong)
    assert (refused.code, "nonsense" in refused.stderr) == (2, True)


def test_a_table_of_quotations_is_validated(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "quotes.csv"
    path.write_text(QUOTES)
    assert "valid (machines quotes)" in " ".join(run_cli("validate", path).stdout.split())
    path.write_text(QUOTES.replace("31.46", "cheap"))
    refused = run_cli("validate", path)
    assert (refused.code, "quotes.csv:2: price_per_hour" in refused.stderr) == (2, True)


@pytest.mark.parametrize("level", ["120%", "most"])
def test_a_wrong_level_of_a_quote_is_answered_with_one_that_is_asked_for(run_cli: Run, level: str) -> None:
    found = run_cli("optimize", RESNET, "--quote", level)
    assert found.code == 2
    assert "write it as 95% or 0.95" in found.stderr


def test_verbose_behind_a_command_shows_the_traceback_that_the_message_promises(
    run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(optimize_command, "load_workload", boom, raising=False)
    monkeypatch.setattr("planner.inputs.load.load_workload", boom)
    assert "run with -v" in run_cli("optimize", RESNET).stderr
    assert "Traceback" in run_cli("optimize", RESNET, "-v").stderr


def test_a_draft_takes_mappings_and_lists(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "w.yaml"
    values = (
        "training.epochs=1", "data.samples=1000", "training.lengths={mean: 300, max: 2000}",
        "constraints.instance_types={allow: [p5.48xlarge, p4d.24xlarge]}", "constraints.deadline=3d",
    )  # fmt: skip
    done = run_cli(
        "init", "--model", "llama-3.1-8b", *(word for one in values for word in ("--set", one)), "-o", out
    )
    assert done.code == 0, done.stderr
    workload = load_workload(out).workload
    assert (workload.training.lengths.mean, workload.training.lengths.max) == (300, 2000)
    assert list(workload.constraints.instance_types.allow) == ["p5.48xlarge", "p4d.24xlarge"]
    wrong = run_cli("init", "--model", "llama-3.1-8b", "--set", "training.lengths={mean: 3, most: 4}")
    assert (wrong.code, "no key 'training.lengths.most'" in wrong.stderr) == (2, True)


def test_figures_of_a_machine_are_numbers_and_the_message_says_which(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "buy.yaml"
    path.write_text(TCO)
    found = run_cli("tco", path)
    assert found.code == 2
    assert (
        "machine.parts[0].usd: must be a number, or a range like {low: 1, value: 2, high: 3}: write 6500"
        in found.stderr
    )
    assert "write 0.4 instead of '40%'" in found.stderr
    assert "got '32 ct'" in found.stderr
    path.write_text(TCO.replace("40%", "nan%"))
    assert "got 'nan%'" in run_cli("tco", path).stderr


def test_a_quotation_for_a_machine_of_the_catalog_is_named_with_its_remedy(
    run_cli: Run, tmp_path: Path
) -> None:
    (tmp_path / "quotes.csv").write_text(QUOTES)
    values = yaml.safe_load(RESNET.read_text())
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump({**values, "prices": {"offers": ["quotes.csv"]}}))
    found = run_cli("optimize", path, *DAY)
    assert found.code == 2
    assert "quotes.csv:2: instance_type: aws has a p5.48xlarge" in found.stderr
    assert "prices.overlays" in found.stderr
    (tmp_path / "quotes.csv").write_text(QUOTES.replace("p5.48xlarge", "my-p5"))
    assert run_cli("validate", path).code == 0


def test_two_files_with_one_machine_are_named(run_cli: Run, tmp_path: Path) -> None:
    own = QUOTES.replace("p5.48xlarge", "my-p5")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(own)
    values = yaml.safe_load(RESNET.read_text())
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump({**values, "prices": {"offers": ["a.csv", "b.csv"]}}))
    found = run_cli("optimize", path, *DAY)
    assert found.code == 2 and "b.csv:2: instance_type: aws has a my-p5" in found.stderr


def test_a_serving_file_without_its_requests_is_sent_to_its_command(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "version: 1\nkind: serving\nname: chat\nmodel: {preset: llama-3-8b}\nload: {requests_per_s: 3}\n"
    )
    assert "use `planner serving" in run_cli("optimize", path).stderr


@pytest.mark.parametrize(
    ("command", "text", "says"),
    [
        (
            "budget",
            "version: 1\nkind: budget\nbudgets: [{name: a, amount: 1, amount_usd: 2, tags: {team: b}}]\n",
            ("'amount_usd': write amount;", "'tags': write the scope of the budget as by: tag:team"),
        ),
        (
            "portfolio",
            "version: 1\nkind: portfolio\nname: p\njobs: [{name: a, workload: w.yaml, after: b}]\n",
            ("'after': jobs do not wait for each other; tasks of a pipeline do",),
        ),
        (
            "pipeline",
            "version: 1\nkind: pipeline\nname: p\ntasks: [{name: a, workload: w.yaml, after: [b], output: 20GB}]\n",
            ("'after': write reads: [{task: NAME, size: 20GB}]", "'output': write reads:"),
        ),
        (
            "optimize",
            "version: 1\nname: i\nkind: inference\nmodel: {preset: qwen3-8b}\n"
            "inference: {requests: 1e6, prompt_tokens: 800, answer_tokens: 20}\n",
            ("did you mean 'input_tokens'?", "'answer_tokens': write output_tokens: {mean: 200}"),
        ),
    ],
)
def test_keys_of_other_tools_are_answered_with_ours(
    run_cli: Run, tmp_path: Path, command: str, text: str, says: tuple[str, ...]
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text)
    found = run_cli(
        command, path, *(("--daily", ROOT / "examples" / "daily-costs.csv") if command == "budget" else ())
    )
    assert found.code == 2
    for words in says:
        assert words in found.stderr


@pytest.mark.parametrize(("name", "meant"), [("amazon", "aws"), ("google", "gcp"), ("azur", "azure")])
def test_a_provider_is_found_by_the_name_of_its_company(run_cli: Run, name: str, meant: str) -> None:
    found = run_cli("catalog", "list", "--provider", name)
    assert (found.code, f"did you mean '{meant}'?" in found.stderr) == (2, True)


def test_an_accelerator_is_found_by_a_part_of_its_name(run_cli: Run) -> None:
    found = run_cli("catalog", "list", "--accelerator", "0gb-sxm")
    assert (found.code, "did you mean" in found.stderr) == (2, True)
