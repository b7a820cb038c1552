"""`planner schema` prints the committed schema, which equals what the models say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner.commands.schema import schema
from planner.inputs.json_schema import SCHEMA_PATH, render_json_schema


def test_committed_schema_equals_the_models() -> None:
    message = "run `python -m planner.inputs.json_schema` and commit the file"
    assert SCHEMA_PATH.read_text(encoding="utf-8") == render_json_schema(), message


@pytest.mark.parametrize("arguments", [[], ["workload"]])
def test_schema_prints_it(arguments: list[str]) -> None:
    result = CliRunner().invoke(schema, arguments)
    assert result.exit_code == 0
    assert result.output == SCHEMA_PATH.read_text(encoding="utf-8")
    printed = json.loads(result.output)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert printed["additionalProperties"] is False
    assert set(printed["required"]) == {"version", "name"}


def test_presets_are_listed_with_their_other_names() -> None:
    result = CliRunner().invoke(schema, ["presets"])
    assert result.exit_code == 0
    line = next(line for line in result.output.splitlines() if line.startswith("llama-3-8b "))
    assert "8.03 B" in line
    assert "meta-llama-3-8b" in line


def test_unknown_document_is_a_usage_error() -> None:
    result = CliRunner().invoke(schema, ["worklod"])
    assert result.exit_code == 2
    assert "workload" in result.output


def test_the_help_names_every_kind_whole() -> None:
    said = CliRunner().invoke(schema, ["--help"], terminal_width=80).output
    kinds = set(re.findall(r"[a-z-]+", said))
    assert set(schema.params[0].type.to_info_dict()["choices"]) <= kinds


@pytest.mark.parametrize(
    "file", sorted(SCHEMA_PATH.parent.glob("*.v1.json")), ids=lambda file: str(file.name)
)
def test_every_committed_schema_is_printed_under_its_name(file: Path) -> None:
    result = CliRunner().invoke(schema, [file.name.removesuffix(".v1.json")])
    assert (result.exit_code, result.output) == (0, file.read_text(encoding="utf-8"))


def test_printing_the_schema_imports_no_pydantic() -> None:
    code = (
        "import sys\nfrom planner.commands.schema import schema\n"
        "schema([], standalone_mode=False)\n"
        "sys.exit('pydantic' in sys.modules or 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0, done.stderr
