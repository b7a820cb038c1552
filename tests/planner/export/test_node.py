"""Terraform files and dashboards before programs of Node: HashiCorp's own HCL, and the types that Grafana publishes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.planner.export.validators import allowed, node_says


def test_every_terraform_file_parses_and_is_formatted(tmp_path: Path) -> None:
    texts = {f"{name}/{file.path}": file.text for name, files in allowed("terraform").items() for file in files
             if file.path.endswith(".tf")}  # fmt: skip
    assert len(texts) > 10
    assert {path: said for path, said in node_says(tmp_path, hcl=texts).items() if said} == {}


def test_broken_and_untidy_hcl_is_found_out(tmp_path: Path) -> None:
    said = node_says(
        tmp_path, hcl={"a.tf": "a   = 1\n", "b.tf": "resource {\n  2\n}\n", "good.tf": "a = 1\n"}
    )
    assert "terraform fmt" in said["a.tf"] and "Argument or block definition required" in said["b.tf"]
    assert said["good.tf"] == ""


def test_every_dashboard_has_the_types_of_grafana(tmp_path: Path) -> None:
    boards = {name: file.text for name, (file,) in allowed("grafana").items()}
    assert (
        boards and {name: said for name, said in node_says(tmp_path, dashboards=boards).items() if said} == {}
    )


def test_wrong_types_of_a_dashboard_are_found_out(tmp_path: Path) -> None:
    board = json.loads(allowed("grafana")["one"][0].text)
    wrong = {
        "key": board | {"foo": 1}, "type": board | {"graphTooltip": "x"}, "good": board,
        "missing": board | {"panels": [
            {**board["panels"][0], "gridPos": {"x": 0, "w": 4, "h": 4}}, *board["panels"][1:]
        ]},
    }  # fmt: skip
    said = node_says(tmp_path, dashboards={name: json.dumps(one) for name, one in wrong.items()})
    assert "foo" in said["key"] and "does not exist in type" in said["key"]
    assert "is not assignable to type" in said["type"] and "y" in said["missing"] and said["good"] == ""
