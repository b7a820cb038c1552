"""The reader of plainly written YAML: what it takes, `yaml12` reads alike and without a fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.inputs.load import parse_workload
from planner.inputs.plain_yaml import read_plain_yaml
from planner.inputs.yaml12 import YamlError, parse_yaml
from tests.planner.inputs.test_workload_compiled import FULL

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
PIECES = (
    *(
        "a",
        "b: 1",
        "- ",
        "-",
        " ",
        "  ",
        "\n",
        "\n  ",
        "\n- ",
        ":",
        ": ",
        " #",
        "#",
        "'",
        '"',
        "[a, b]",
        "{a: b}",
        "~",
    ),
    *(
        "|",
        ">",
        "&x",
        "*x",
        "!t",
        "%",
        "@",
        "`",
        ",",
        "]",
        "}",
        "?",
        "---",
        "...",
        "\t",
        "\r",
        "é",
        "\\",
        "0x1F",
        "1e3",
    ),
    *(
        "-5",
        "-.5",
        ".5",
        "true",
        "null",
        "<<",
        "a: b: c",
        "key:",
        "\u2028",
        "\x7f",
        ".nan",
        "=",
        "\n\n",
        "\n    x: y",
    ),
)


def _same(one: Any, other: Any) -> bool:
    """Equal with types and the order of keys."""
    return repr(one) == repr(other)


def _agrees(text: str) -> bool:
    """Whether the plain reader took the text; fails where `yaml12` reads it otherwise or finds a fault."""
    plain = read_plain_yaml(text)
    if plain is None:
        return False
    document = parse_yaml(text, "a.yaml")  # no error either
    assert not document.faults
    assert _same(plain, document.data)
    return True


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_read_alike(path: Path) -> None:
    _agrees(path.read_text(encoding="utf-8"))


def test_most_examples_are_plain() -> None:
    taken = sum(_agrees(path.read_text(encoding="utf-8")) for path in EXAMPLES)
    assert taken >= 0.7 * len(EXAMPLES)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: 1\nb:\n  c: x # why\n  d:\n  - 1\n  - y z\n", {"a": 1, "b": {"c": "x", "d": [1, "y z"]}}),
        ("a:\n  - b: 1\n    c: 2\n  - b: 3\n", {"a": [{"b": 1, "c": 2}, {"b": 3}]}),
        ("a: [x, 2, 3e1]\nb: {c: d, e: -1}\n", {"a": ["x", 2, 30.0], "b": {"c": "d", "e": -1}}),
        ("a: []\nb: {}\n", {"a": [], "b": {}}),
        ("a: 'it # is'\nb: \"x: y\" # z\nc:\nd: ~\n", {"a": "it # is", "b": "x: y", "c": None, "d": None}),
        ("a: http://x:80/y\nb: 72:00:00\nc: $3\n", {"a": "http://x:80/y", "b": "72:00:00", "c": "$3"}),
    ],
)  # fmt: skip
def test_plain_text_is_taken(text: str, data: dict[str, Any]) -> None:
    assert _agrees(text)
    assert _same(read_plain_yaml(text), data)


@pytest.mark.parametrize(
    "text",
    [
        "", "# nothing\n", "a\n", "- a\n", " a: 1\n", "a: 1\n b: 2\n", "a: 1\na: 2\n", "a: b\n  c\n", "a: |\n  b\n",
        "a: &x 1\n", "a: *x\n", "a: !t 1\n", "a: 'it''s'\n", 'a: "b\\n"\n', "a: 'b\n", "a: [b\n", "a: [b: c]\n",
        "a: {b: c, b: d}\n", "a: [b, ]\n", "---\na: 1\n", "a: 1\n---\nb: 2\n", "a:\tb\n", "a: b\r\n", "a: é\n",
        "a: b: c\n", "a: - b\n",
        "a: b:\n", "a:\n  - b\n  c\n", "a:\n  - - b\n", "<<: 1\n", "a b: 1\n", "1: 2\n", "a: @b\n", "a:b\n",
        f"a: {'1' * 401}\n",
        "a: [" + ", ".join("b" * 60_000) + "]\n",
    ],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_other_reader(text: str) -> None:
    assert read_plain_yaml(text) is None


@pytest.mark.hypothesis
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_both_readers_agree_on_odd_texts(text: str) -> None:
    _agrees(text)


@pytest.mark.hypothesis
@given(st.data())
def test_both_readers_agree_on_changed_files(drawn: st.DataObject) -> None:
    text = drawn.draw(st.sampled_from([FULL, *(path.read_text(encoding="utf-8") for path in EXAMPLES)]))
    for _ in range(drawn.draw(st.integers(1, 3))):
        at = drawn.draw(st.integers(0, len(text)))
        cut = drawn.draw(st.integers(0, 6))
        text = text[:at] + drawn.draw(st.sampled_from(PIECES)) + text[at + cut :]
    _agrees(text)


def test_faults_found_later_have_their_places() -> None:
    text = "version: 1\nname: a\nmodel:\n  preset: bert-large\ntraining:\n  tokens: 1e9\n  global_batch: no\n"
    assert read_plain_yaml(text) is not None
    with pytest.raises(InputError, match=r"^a\.yaml:7:17: training\.global_batch: "):
        parse_workload(text, Path("a.yaml"))


def test_a_plain_workload_is_read_without_the_yaml_library() -> None:
    code = (
        "import sys; from pathlib import Path; from planner.inputs.load import parse_workload;"
        "parse_workload(Path('examples/bert-large.yaml').read_text(), Path('w.yaml'));"
        "assert not {'yaml', 'pydantic'} & sys.modules.keys(), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_text_that_is_no_yaml_is_an_error() -> None:
    with pytest.raises(InputError, match="is not valid YAML"):
        parse_workload("a: [b\n", Path("a.yaml"))
    with pytest.raises(YamlError):
        parse_yaml("a: [b\n", "a.yaml")
