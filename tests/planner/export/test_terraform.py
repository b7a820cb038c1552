"""Terraform: a real parser, arguments against the providers' own lists, references, and `terraform fmt` where it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.export.hcl import quote
from planner.export.registry import Options, export
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES

ARGUMENTS = Path(__file__).parents[4] / "shared" / "export" / "terraform_args.json"
NEEDED = {  # required arguments, where the providers' lists are not at hand
    "aws_placement_group": {"name", "strategy"},
    "aws_autoscaling_group": {"min_size", "max_size"},
    "aws_ec2_capacity_reservation": {
        "availability_zone", "instance_count", "instance_platform", "instance_type",
    },
    "aws_ec2_capacity_block_reservation": {"capacity_block_offering_id", "instance_platform"},
    "google_compute_instance_template": {"machine_type", "disk"},
    "google_compute_reservation": {"name", "specific_reservation", "zone"},
    "google_compute_resize_request": {"instance_group_manager", "name", "resize_by"},
    "azurerm_linux_virtual_machine_scale_set": {
        "admin_username", "location", "name", "network_interface", "os_disk", "resource_group_name", "sku",
    },
    "azurerm_capacity_reservation": {"capacity_reservation_group_id", "name", "sku"},
}  # fmt: skip
META = {"count", "depends_on", "lifecycle", "for_each", "provider", "dynamic", "__is_block__", "__comments__"}
CASES = ("in_turn", "gcp", "azure")


def bought(name: str, option: str) -> Launch:
    launch = LAUNCHES[name]
    return replace(launch, pools=tuple(replace(pool, option=option) for pool in launch.pools))


def texts_of(launch: Launch) -> dict[str, str]:
    return {file.path: file.text for file in export(launch, "terraform", Options())}


@cache
def known_arguments() -> dict[str, Any]:
    if not ARGUMENTS.exists():
        return {}
    loaded = json.loads(ARGUMENTS.read_text(encoding="utf-8"))["resources"]
    assert isinstance(loaded, dict)
    return loaded


@cache
def parsed(text: str) -> dict[str, Any]:
    hcl2 = pytest.importorskip("hcl2", reason="python-hcl2 is not installed")
    loaded = hcl2.loads(text)
    assert isinstance(loaded, dict)
    return loaded


def resources(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Type, name and body of each resource."""
    return [
        (kind.strip('"'), name.strip('"'), body)
        for item in parsed(text).get("resource", [])
        for kind, named in item.items()
        for name, body in named.items()
        if not kind.startswith("__")
    ]


def wrong_arguments(text: str) -> Iterator[str]:
    """Arguments that a resource does not have, and those that it misses."""
    for kind, name, body in resources(text):
        missing = NEEDED.get(kind, set()) - set(body)
        yield from (f"{kind}.{name}: misses {key}" for key in sorted(missing))
        if known_arguments():
            yield from _walk(f"{kind}.{name}", known_arguments()[kind], body)


def _walk(where: str, known: dict[str, Any], body: dict[str, Any]) -> Iterator[str]:
    blocks = dict(body)
    for item in body.get("dynamic", []):
        for key, dynamic in item.items():
            if not key.startswith("__"):
                blocks[key.strip('"')] = [*blocks.get(key.strip('"'), []), *dynamic["content"]]
    for key, rule in known.items():
        if rule.get("req") and key not in blocks:
            yield f"{where}: misses {key}"
    for key, value in blocks.items():
        if key in META:
            continue
        if key not in known:
            yield f"{where}: has no argument {key}"
            continue
        if "block" in known[key] and known[key]["block"]:
            for inner in value if isinstance(value, list) else [value]:
                yield from _walk(f"{where}.{key}", known[key]["block"], inner)


def loose_ends(main: str, variables: str) -> set[str]:
    """Names that are used and not declared, or declared and not used."""
    declared = set(re.findall(r'^variable "(\w+)"', variables, re.MULTILINE))
    code = "\n".join(line for line in main.splitlines() if not line.lstrip().startswith("#"))
    used = set(re.findall(r"\bvar\.(\w+)", re.sub(r'"(?:[^"\\$]|\\.|\$)*"', _kept, code)))
    made = {
        f"{kind}.{name}"
        for kind, name in re.findall(r'^(?:resource|data) "(\w+)" "(\w+)"', main, re.MULTILINE)
    }
    wanted = set(re.findall(r"\b((?:aws|google|azurerm)_\w+\.place_\d+)\b", code))
    own = used | set(re.findall(r"\bvar\.(\w+)", variables))
    return (used - declared) | (declared - own) | (wanted - made)


def _kept(match: re.Match[str]) -> str:
    return match[0] if "var." in match[0] else '""'


@pytest.mark.parametrize(
    "launch",
    [*(LAUNCHES[name] for name in CASES), bought("one", "capacity_block"), bought("gcp", "flex_start"),
     bought("azure", "spot")],
)  # fmt: skip
def test_every_argument_is_one_of_the_provider_and_none_is_missing(launch: Launch) -> None:
    texts = texts_of(launch)
    assert list(wrong_arguments(texts["main.tf"])) == []
    assert parsed(texts["variables.tf"])["variable"]


@pytest.mark.parametrize("name", LAUNCHES)
def test_all_names_are_declared_and_used(name: str) -> None:
    texts = texts_of(LAUNCHES[name])
    assert loose_ends(texts["main.tf"], texts["variables.tf"]) == set()


def fmt_says(folder: Path) -> str:
    """How terraform itself would write the files below a folder, empty where so."""
    terraform = shutil.which("terraform")
    if terraform is None:
        pytest.skip("terraform is not on PATH, and no package index has it")
    done = subprocess.run(
        [terraform, "fmt", "-check", "-diff", "-no-color", "-recursive", str(folder)], capture_output=True, text=True,
        timeout=60,
        env={"HOME": str(folder), "PATH": os.environ["PATH"], "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"},
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_terraform_itself_would_write_it_so(tmp_path: Path) -> None:
    for name in LAUNCHES:
        for path, text in texts_of(LAUNCHES[name]).items():
            (tmp_path / f"{name}-{path}").write_text(text)
    assert fmt_says(tmp_path) == ""


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("market_type ", "marked_type ", "no argument marked_type"),
        ("  strategy = ", "  strateg  = ", "misses strategy"),
        ('"use1-az6"]', '"use1-az6"', "Unexpected|expected|token"),
        ("min_size ", "min_siez ", "misses min_size"),
    ],
)
def test_what_is_wrong_is_found_out(good: str, bad: str, said: str) -> None:
    text = texts_of(LAUNCHES["one"])["main.tf"]
    assert good in text
    if said.startswith("no argument") and not known_arguments():
        pytest.skip("which arguments there are is known from ../shared, which is not beside this checkout")
    try:
        found = list(wrong_arguments(text.replace(good, bad, 1)))
    except Exception as error:  # noqa: BLE001  # whatever the parser raises
        found = [str(error)]
    assert any(re.search(said, fault) for fault in found)


def test_a_name_that_is_not_declared_is_found_out() -> None:
    texts = texts_of(LAUNCHES["one"])
    assert loose_ends(texts["main.tf"].replace("var.subnet_ids", "var.subnets"), texts["variables.tf"]) == {
        "subnets", "subnet_ids",
    }  # fmt: skip


def test_places_are_one_at_a_time_in_the_order_of_the_plan() -> None:
    launch = LAUNCHES["in_turn"]
    groups = [
        body for kind, _, body in resources(texts_of(launch)["main.tf"]) if kind == "aws_autoscaling_group"
    ]
    templates = [
        body for kind, _, body in resources(texts_of(launch)["main.tf"]) if kind == "aws_launch_template"
    ]
    assert [body["desired_capacity"] for body in groups] == [pool.nodes for pool in launch.pools]
    assert [body["region"].strip('"') for body in groups] == [pool.region for pool in launch.pools]
    spot = ["instance_market_options" in body for body in templates]
    assert spot == [pool.is_spot for pool in launch.pools]
    texts = texts_of(launch)
    assert "active = [var.place]" in texts["main.tf"] and 'variable "place"' in texts["variables.tf"]
    together = texts_of(LAUNCHES["together"])
    assert "active = [0, 1]" in together["main.tf"] and 'variable "place"' not in together["variables.tf"]


GANG = LAUNCHES["together"]


def on(launch: Launch, provider: str) -> Launch:
    """The gang bought in parts, with the machines of another provider's launch."""
    machine = replace(LAUNCHES[provider].first, option="on_demand")
    return replace(launch, pools=tuple(replace(machine, nodes=pool.nodes) for pool in launch.pools))


@pytest.mark.parametrize("zone", ["use1-az6", ""])
def test_parts_of_one_gang_reach_each_other(zone: str) -> None:
    """One security group lets them in, one placement group brings them near, and a single node has its EFA too."""
    spot, steady = GANG.pools
    launch = replace(GANG, pools=(spot, replace(steady, zone=zone)))
    found = resources(texts_of(launch)["main.tf"])
    assert sum(kind == "aws_security_group" for kind, _, _ in found) == 1
    assert sum(kind == "aws_placement_group" for kind, _, _ in found) == 1
    templates = [body for kind, _, body in found if kind == "aws_launch_template"]
    for body in templates:
        cards = [body["network_interfaces"][0], body["dynamic"][0]['"network_interfaces"']["content"][0]]
        assert all("aws_security_group.place_0[0].id" in str(card["security_groups"]) for card in cards)
        assert "efa" in cards[0]["interface_type"]
        assert "aws_placement_group.place_0[0].name" in body["placement"][0]["group_name"]
    assert len(templates) == 2 and "precondition" in str(templates[1])
    main = texts_of(launch)["main.tf"]
    assert (
        main.count('var.subnet_ids["use1-az6"]') == 2
        and loose_ends(main, texts_of(launch)["variables.tf"]) == set()
    )


def test_parts_of_a_gang_on_google_cloud_share_their_placement() -> None:
    found = resources(texts_of(on(GANG, "gcp"))["main.tf"])
    assert sum(kind == "google_compute_resource_policy" for kind, _, _ in found) == 1
    templates = [body for kind, _, body in found if kind == "google_compute_instance_template"]
    assert ["place_0" in str(body["resource_policies"]) for body in templates] == [True, True]
    assert all("gpu_subnetworks" in str(body["dynamic"]) for body in templates)


def test_a_gang_that_infiniband_would_not_join_is_refused() -> None:
    with pytest.raises(InputError, match="one scale set"):
        texts_of(on(GANG, "azure"))


def test_offers_that_are_tried_in_turn_keep_their_own_groups() -> None:
    found = resources(texts_of(LAUNCHES["in_turn"])["main.tf"])
    assert sum(kind == "aws_security_group" for kind, _, _ in found) == 3


def test_all_efa_cards_are_there() -> None:
    text = texts_of(LAUNCHES["one"])["main.tf"]
    assert "range(1, 32)" in text and '"efa-only"' in text
    b300 = replace(LAUNCHES["one"].first, instance_type="p6-b300.48xlarge")
    text = texts_of(replace(LAUNCHES["one"], pools=(b300,)))["main.tf"]
    assert "range(1, 17)" in text and '= "efa"' not in text


def test_a_scale_set_in_one_placement_group_holds_no_reservation() -> None:
    """The provider refuses the two together, which its list of arguments does not say."""
    gang = texts_of(LAUNCHES["azure"])
    single = texts_of(replace(LAUNCHES["azure"], nodes=1, pools=(replace(LAUNCHES["azure"].first, nodes=1),)))
    for texts in (gang, single):
        (body,) = (b for kind, _, b in resources(texts["main.tf"]) if kind.endswith("scale_set"))
        assert body["single_placement_group"] != ("capacity_reservation_group_id" in body)
    assert "hold_capacity" not in gang["variables.tf"] and "hold_capacity" in single["variables.tf"]


def test_texts_of_users_stay_texts() -> None:
    text = '"}\nresource "x" "y" {}\n${var.place} %{ if true } \\ */ /* # //'
    run = replace(LAUNCHES["one"].run, team=text, tags={text: text})
    launch = replace(
        LAUNCHES["one"], name=text, run_id=text, run=run, created_at=text,
        pools=(replace(LAUNCHES["one"].first, region=text, zone=text),),
    )  # fmt: skip
    kinds = [kind for kind, _, _ in resources(texts_of(launch)["main.tf"])]
    assert kinds == [kind for kind, _, _ in resources(texts_of(LAUNCHES["one"])["main.tf"])]
    assert list(wrong_arguments(texts_of(launch)["main.tf"])) == []


def test_terraform_reads_every_quoted_text_as_it_was(tmp_path: Path) -> None:
    terraform = shutil.which("terraform")
    if terraform is None:
        pytest.skip("terraform is not on PATH, and no package index has it")
    texts = ["${x}", "$${x}", "$$${x}", "%{if}", "%%{if}", "$", "a$$", '"\\\n\t', "\u2028é\x85", "\x01"]
    done = subprocess.run(
        [terraform, "console"], input=f"jsonencode([{', '.join(map(quote, texts))}])\n", capture_output=True,
        text=True, timeout=60, cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"},
    )  # fmt: skip
    assert json.loads(json.loads(done.stdout)) == texts, done.stderr


def test_other_providers_are_refused_by_name() -> None:
    launch = LAUNCHES["one"]
    with pytest.raises(InputError, match="alibaba"):
        texts_of(replace(launch, pools=(replace(launch.first, provider="alibaba"),)))
