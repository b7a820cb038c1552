"""What engineers and platform teams type first: words of other tools, own machines left out, saved answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import planner
from planner.errors import InputError
from planner.inputs.load import parse_workload
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.catalog("small")
DAY = ("--as-of", "2026-11-20")
RESNET = ROOT / "examples" / "resnet50-imagenet.yaml"
MODEL = "model: {preset: llama-3-8b}"
TRAINING = "training: {tokens: 1e9, global_batch: 64}"
NODES: dict[str, Any] = {
    "instance_type": "dgx-a100", "accelerator": "a100-40gb-sxm", "accelerator_count": 8, "nodes": 1, "vcpus": 128,
    "memory_gib": 1024, "price_per_hour": 0.1, "intra_node": "nvswitch", "intra_node_gb_per_s": 600,
}  # fmt: skip


def refused(*sections: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_workload("\n".join(("version: 1", "name: t", *sections)), Path("w.yaml"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("training", "says"),
    [
        ("{method: grpo}", "got 'grpo'; write objective: grpo"),
        ("{method: rlhf}", "write objective: ppo or grpo"),
        ("{method: qat}", "the rounding of quantization-aware training is not counted: write full"),
        ("{num_generations: 16}", "write rollouts: {samples_per_prompt: 16}"),
        ("{max_completion_length: 8192}", "write rollouts: {response_tokens:"),
        ("{max_prompt_length: 512}", "write rollouts: {prompt_tokens:"),
        ("{rollout_batch_size: 512}", "global_batch counts the responses of a step"),
        ("{global_batch: 4M tokens}", "write global_batch in sequences: tokens of a step / sequence_length"),
        ("{global_batch_tokens: 4e6}", "write global_batch in sequences"),
        ("{rank: 8}", "did you mean 'lora_rank'?"),
        ("{pairs: 600}", "did you mean 'samples'?"),
        ("{resolution: 480p}", "write image_size under 'model'"),
        ("{fim_rate: 0.5}", "it changes neither time nor cost: leave it out"),
        ("{objective: grpo, tokens: 1, global_batch: 1}", "e.g. 'rollouts: {prompt_tokens: {mean: 512},"),
        ("{objective: contrastive, tokens: 1, global_batch: 1}", "e.g. 'contrastive: {width: 1024}'"),
    ],
)
def test_a_training_in_the_words_of_its_trainer_is_answered_with_ours(training: str, says: str) -> None:
    assert says in refused(MODEL, f"training: {training}")


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("model: {type: diffusion}", "write family: transformer, cnn, vit or diffusion"),
        ("model: {family: gnn}", "it is not modelled as such: family: cnn with params"),
        ("model: {family: moe}", "write transformer"),
        ("data: {images: 10e6}", "did you mean 'samples'?"),
        ("data: {hours: 1200}", "hours x 120 of those"),
        ("data: {nodes: 111e6}", "graph networks are not modelled as such"),
        ("constraints: {accelerators: A100}", "write {allow: [A100]}"),
        ("constraints: {count: 8}", "write max_accelerators"),
        (
            "constraints: {quota: [{provider: gcp, gpu: H100, limit: 8}]}",
            "write quota: h100, a family of instance types",
        ),
        ("quotas: []", "limits of the account are quota under 'constraints'"),
        ("reservations: []", "for capacity already paid, write commitments"),
        (
            "commitments: [{provider: aws, until: 2027-01-31, count: 2}]",
            "unknown key 'until' (did you mean 'expires'?)",
        ),
        ("commitments: [{provider: aws, count: 2}]", "unknown key 'count': write nodes"),
        ("budget: 500", "it belongs under 'constraints' as budget_usd"),
        ("trials: 200", "kind: fleet with fleet: {runs: 200}"),
        ("spot: {preemptible: true}", "for spot only, write purchase_options: [spot] there"),
    ],
)
def test_sections_in_words_of_other_tools_are_answered_with_ours(section: str, says: str) -> None:
    assert says in refused(*(text for text in (MODEL, TRAINING) if text[:5] != section[:5]), section)


def test_a_missing_key_says_what_it_is_for() -> None:
    said = refused(MODEL, "training: {objective: grpo, steps: 9, global_batch: 64, rollouts: {}}")
    assert "'prompt_tokens' is missing: lengths of prompts; its keys: mean, p95, max" in said
    said = refused(MODEL, TRAINING, "commitments: [{provider: aws}]")
    assert "'region' is missing\n" in said and "'nodes' is missing: instances owned" in said
    assert "'purchase_option' is missing: reserved_1y, cud_3y and the like" in said


def owning(folder: Path, limits: dict[str, Any], **machine: Any) -> Path:
    (folder / "nodes.yaml").write_text(yaml.safe_dump({"machines": [{**NODES, **machine}]}))
    values = yaml.safe_load(RESNET.read_text())
    values |= {"prices": {"offers": ["nodes.yaml"]}, "constraints": {"deadline": "20d", **limits}}
    path = folder / "w.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.mark.parametrize(
    ("limits", "machine", "says"),
    [
        (
            {"residency": ["eu"]},
            {},
            "excluded by constraints.residency: their file has region onprem; write a country such as DE, or a group",
        ),
        ({"providers": ["aws"]}, {}, "excluded by constraints.providers: add onprem to use them"),
        (
            {"regions": ["aws/us-*"]},
            {"region": "DE"},
            "excluded by constraints.regions: add onprem/DE to use them",
        ),
        ({"residency": ["us"]}, {"region": "DE"}, ""),
        ({}, {}, ""),
    ],
)
def test_own_machines_that_a_limit_on_places_leaves_out_are_named(
    run_cli: Run, tmp_path: Path, limits: dict[str, Any], machine: dict[str, Any], says: str
) -> None:
    found = run_cli("optimize", owning(tmp_path, limits, **machine), *DAY)
    assert found.code == 0, found.stderr
    said = " ".join(found.stdout.split())
    assert (f"own machines dgx-a100 are {says}" in said) if says else ("own machines" not in said)


@pytest.mark.parametrize("group", ["eu", "de", "europe"])
def test_own_machines_stand_in_the_country_that_their_file_names(
    run_cli: Run, tmp_path: Path, group: str
) -> None:
    path = owning(tmp_path, {"residency": [group]}, region="DE")
    plan = tmp_path / "plan.json"
    assert run_cli("optimize", path, *DAY, "--out", plan).code == 0
    assert json.loads(plan.read_text())["lines"][0]["region"] == "DE"
    verified = run_cli("verify", plan, "--workload", path)
    assert verified.code == 0, verified.stdout


def test_a_saved_answer_in_place_of_its_file_is_named(run_cli: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert run_cli("optimize", RESNET, *DAY, "--out", plan).code == 0
    for command in ("explain", "validate", "portfolio", "commit", "tco"):
        found = run_cli(command, plan)
        assert (found.code, found.stderr.count("\n")) == (2, 1)
        assert "is a saved answer: give the file that it answers" in found.stderr


@pytest.mark.parametrize("deadline", ["8h", "20h", "2d"])
def test_a_run_starts_before_it_ends_where_on_demand_takes_over(
    run_cli: Run, tmp_path: Path, deadline: str
) -> None:
    """Spot may be awaited for longer than the deadline; on-demand starts the run then."""
    plan = tmp_path / "plan.json"
    asked = ("--set", f"constraints.deadline={deadline}", "--out", plan)
    assert run_cli("optimize", RESNET, *DAY, *asked).code == 0
    found = json.loads(plan.read_text())
    launch = found["launch"]
    assert launch["strategy"] == "spot_with_fallback"
    assert launch["first_wait_hours"] <= launch["waiting_hours"] < found["hours"]
    assert found["starts_in_hours"] < found["hours"]
    assert (launch["first_wait_hours"] == launch["waiting_hours"]) == (deadline != "2d")


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        (("--to", "k8s"), "kubernetes"),
        (("--to", "terrafrom"), "terraform"),
        (("--to", "slurm", "--framework", "trl"), "accelerate"),
    ],
)
def test_targets_and_frameworks_are_found_by_their_other_names(
    run_cli: Run, tmp_path: Path, option: tuple[str, ...], meant: str
) -> None:
    plan = tmp_path / "plan.json"
    assert run_cli("optimize", RESNET, *DAY, "--out", plan).code == 0
    found = run_cli("export", plan, *option)
    assert (found.code, f"(did you mean {meant!r}?)" in found.stderr) == (2, True)


def test_a_quota_and_a_commitment_are_answered_with_names_that_hold(run_cli: Run, tmp_path: Path) -> None:
    values = yaml.safe_load(RESNET.read_text())
    path = tmp_path / "w.yaml"
    quota = {"provider": "gcp", "quota": "A100", "limit": 8}
    path.write_text(yaml.safe_dump({**values, "constraints": {"deadline": "20d", "quota": [quota]}}))
    assert "did you mean 'a100'?" in run_cli("optimize", path, *DAY).stderr
    owned = {
        "provider": "aws", "region": "eu-west-1", "instance_type": "p5.48xlarge", "purchase_option": "reserved_1y",
        "nodes": 1,
    }  # fmt: skip
    path.write_text(yaml.safe_dump({**values, "commitments": [owned]}))
    said = run_cli("optimize", path, *DAY).stderr
    assert (
        "no offer of p5.48xlarge in aws/eu-west-1 in the catalog; aws has it in eu-north-1, us-east-1" in said
    )
    box = {
        **owned,
        "provider": "onprem",
        "region": "berlin",
        "instance_type": "dgx-h100",
        "purchase_option": "owned",
    }
    path.write_text(yaml.safe_dump({**values, "commitments": [box]}))
    said = run_cli("optimize", path, *DAY).stderr
    assert "machines that you own are described in a file that prices.offers names" in " ".join(said.split())


def test_a_card_that_is_sold_nowhere_is_known_by_a_part_of_its_name(run_cli: Run) -> None:
    found = run_cli("catalog", "list", "--accelerator", "4090")
    assert "no offers with prices for rtx4090-24gb-pcie" in found.stderr


def test_a_list_of_machines_shows_how_it_is_written(run_cli: Run, tmp_path: Path) -> None:
    path = owning(tmp_path, {})
    (tmp_path / "nodes.yaml").write_text("- {name: desk, gpus: 2}\n")
    said = run_cli("optimize", path, *DAY).stderr
    assert "a list `machines`: machines: [{instance_type: my-h100, accelerator:" in said
    (tmp_path / "nodes.yaml").write_text("machines: [{name: desk, gpus: 2, ram_gb: 64}]\n")
    said = run_cli("optimize", path, *DAY).stderr
    for meant in ("instance_type", "accelerator_count", "memory_gib"):
        assert f"no such field (did you mean {meant}?)" in said


def test_python_names_what_a_question_takes() -> None:
    given: Any = {"version": 1}
    for ask in (planner.optimize, planner.load):
        with pytest.raises(InputError, match=r"must be the path of a file, or what planner\.load returned"):
            ask(given)
    assert (
        repr(planner.load(RESNET)).startswith("<Workload: ") and len(repr(planner.load(RESNET)).split()) < 9
    )


@pytest.mark.parametrize(
    ("name", "over"), [("aws", "provider"), ("spot", "option"), ("aws/us-east-1", "region")]
)
def test_rows_of_another_kind_are_answered_with_the_option_that_compares_them(
    run_cli: Run, name: str, over: str
) -> None:
    found = run_cli("compare", RESNET, *DAY, "--pick", f"{name},gcp")
    assert (found.code, f"compare {over}s with --over {over}" in found.stderr) == (2, True)


def test_a_provider_whose_every_price_is_flagged_is_answered_with_the_option(run_cli: Run) -> None:
    limits = ("--set", "constraints.providers=[vastai]")
    said = " ".join(run_cli("optimize", RESNET, *DAY, *limits).stdout.split())
    assert "every price of vastai has a refusing flag: `--allow-flagged` allows them" in said
    allowed = " ".join(run_cli("optimize", RESNET, *DAY, *limits, "--allow-flagged").stdout.split())
    assert "has a refusing flag" not in allowed


def test_a_setting_reaches_an_item_of_a_list_as_python_writes_it(run_cli: Run, tmp_path: Path) -> None:
    values = yaml.safe_load(RESNET.read_text())
    quota = {"provider": "aws", "quota": "h100", "limit": 0}
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump({**values, "constraints": {"deadline": "20d", "quota": [quota]}}))
    dotted, bracketed = (
        run_cli("optimize", path, *DAY, "-o", "json", "--set", f"constraints.quota{at}.quota=a100").stdout
        for at in (".0", "[0]")
    )
    assert json.loads(dotted)["total_usd"] == json.loads(bracketed)["total_usd"]
