"""Files that are no answers are refused with the JSON path, never with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.judge.document import MalformedError, Node, leaves, read_answer


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"hours": Infinity}', "$.hours"), ('{"lines": [{"nodes": NaN}]}', "$.lines[0].nodes"),
        ('{"a": {"b": -Infinity}}', "$.a.b"), ('{"nodes": 1e300}', "$.nodes"), ("[" * 100 + "]" * 100, "levels deep"),
        ("[" * 200_000, "not JSON"), (f'{{"n": {"9" * 5000}}}', "not JSON"), (f'{{"n": {"9" * 400}}}', "$.n"),
        ("\x00", "not JSON"),
    ],
)  # fmt: skip
def test_what_no_answer_holds_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MalformedError) as caught:
        read_answer(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 2


def test_readers_name_the_path_and_what_was_given() -> None:
    node = Node({"a": [{"b": "x"}], "at": "2026-11-20T00:00"})
    for read in (
        lambda: node["a"][0]["b"].number(), lambda: node["a"][1], lambda: node["a"][0]["c"],
        lambda: node["a"].keys(), lambda: node["a"][0]["b"].count(), lambda: node["a"][0]["b"].money(),
        lambda: node["at"].moment(), lambda: node["a"][0]["b"].flag(), lambda: list(node["at"]),
    ):  # fmt: skip
        with pytest.raises(MalformedError, match=r"^\$\.a"):
            read()


def test_every_leaf_has_a_path_and_empty_parts_are_leaves() -> None:
    assert list(leaves({"a": [1, {"b": None}], "c": [], "d": {}})) == [
        ("$.a[0]", 1), ("$.a[1].b", None), ("$.c", []), ("$.d", {}),
    ]  # fmt: skip
