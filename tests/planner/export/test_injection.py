"""Texts of users that try to break out: they stay texts in every file of every target."""

from __future__ import annotations

import itertools
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.names import TAG_RULES, clean_tags
from planner.export.registry import TARGETS, Options, export
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import LOADER

TEXTS = (
    "$(touch pwned)", "`touch pwned`", '"; touch pwned; "', "'; touch pwned; '", "a\ntouch pwned\n#SBATCH --nodes=9",
    "${HOME}", "%{ if true }x%{ endif }", '"}\nresource "x" "y" {}', "a: b", "- x\n- y", " # c", "{{ .Values }}",
    "{% x %}", "\\", "\u2028x\u0085y", "--help", "EOF\nEOF", "!!python/object:os.system", "&a *a", "\t", "yes", "1e3",
    "|", "é" * 300,
)  # fmt: skip
pytestmark = pytest.mark.catalog("small")


def hostile(text: str, base: Launch, *, places: bool = True) -> Launch:
    """A launch with `text` wherever a user, or an edited plan, can put one."""
    quoted = "'" + text.replace("'", "'\\''") + "'"
    run = replace(
        base.run, command=f"train.py {quoted}", setup="", env={"VALUE": text}, secrets=(), data=text, checkpoints=text,
        outputs=text, team=text, tags={text: text, "cost-center": text},
    )  # fmt: skip
    pool = replace(base.first, region=text, zone=text) if places else base.first
    return replace(base, name=text, run=run, pools=(pool,), created_at=text)


def shape(value: Any) -> Any:
    """Types and known keys of a document, without its texts and tags."""
    if isinstance(value, dict):
        return {
            key: shape(inner) for key, inner in value.items() if key not in ("labels", "tags", "annotations")
        }
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return type(value).__name__


def directives(script: str) -> list[str]:
    """Keys of the directives that Slurm reads: those before the first command."""
    head = itertools.takewhile(lambda line: not line or line.startswith("#"), script.splitlines())
    return [line.partition("=")[0] for line in head if line.startswith("#SBATCH")]


def check(path: str, text: str, benign: str) -> None:
    if path.endswith((".sh", ".sbatch")):
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done.stderr
        assert directives(text) == directives(benign)
    elif path.endswith((".yaml", ".yml")):
        found, wanted = (list(yaml.load_all(each, LOADER)) for each in (text, benign))
        assert shape(found) == shape(wanted)
    elif path.endswith(".json"):
        assert shape(json.loads(text)) == shape(json.loads(benign))


@pytest.mark.parametrize("target", TARGETS)
def test_no_text_breaks_out_of_a_file(target: str) -> None:
    base = LAUNCHES["one"]
    options = Options(values={"role": "loader"} if "role" in TARGETS[target].options else {})
    try:
        wanted = {file.path: file.text for file in export(hostile("plain", base), target, options)}
        places = True
    except InputError:  # it knows the regions that there are
        wanted = {
            file.path: file.text for file in export(hostile("plain", base, places=False), target, Options())
        }
        places = False
    for text in TEXTS:
        try:
            files = export(hostile(text, base, places=places), target, options)
        except InputError as error:  # refused by name is as good
            assert len(str(error)) < 2000
            continue
        assert len(files) == len(wanted), text
        for file, (path, plain) in zip(files, wanted.items(), strict=True):
            check(path, file.text, plain)


def test_what_a_text_says_reaches_the_program_as_it_is(tmp_path: Path) -> None:
    shown = tmp_path / "torchrun"
    shown.write_text('#!/bin/bash\nprintf \'%s\\0\' "$VALUE" "$PLANNER_DATA" "${@: -1}"\n')
    shown.chmod(0o755)
    for text in TEXTS:
        launch = replace(hostile(text, LAUNCHES["one"]), nodes=1)
        (tmp_path / "run.sh").write_text(export(launch, "torchrun", Options())[0].text)
        done = subprocess.run(
            ["bash", "run.sh"], cwd=tmp_path, capture_output=True, timeout=20,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.stdout.decode() == f"{text}\0" * 3, (text, done.stderr)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("target", TAG_RULES)
def test_tags_stay_apart_and_within_the_rules(target: str) -> None:
    from planner.export.names import is_clean

    key_rule, value_rule = TAG_RULES[target]
    tags = {text: text for text in TEXTS} | {
        "A" * 300: "B" * 300,
        "A" * 301: "",
        "aws:x": "1",
        "Azure-x": "2",
        "9x": ".",
    }
    cleaned = clean_tags(tags, target)
    assert len(cleaned) == len(tags)
    assert all(is_clean(key, key_rule) for key in cleaned)
    assert all(is_clean(value, value_rule) or not value for value in cleaned.values())
    assert clean_tags({"team": "ml", "cost-center": "1234"}, target) == {"team": "ml", "cost-center": "1234"}
