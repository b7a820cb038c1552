"""YAML 1.2 core schema, places, and the limits that keep a hostile file cheap."""

from __future__ import annotations

from typing import Any

import pytest

from planner.inputs.faults import Place
from planner.inputs.yaml12 import MAX_DEPTH, YamlError, parse_yaml, resolve_scalar


def parse(text: str) -> Any:
    document = parse_yaml(text, "f.yaml")
    assert not document.faults
    return document.data


def faults(text: str) -> list[str]:
    try:
        return [fault.message for fault in parse_yaml(text, "f.yaml").faults]
    except YamlError as error:
        return [fault.message for fault in error.faults]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e12", 1e12),
        ("1.5E-3", 1.5e-3),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("010", 10),
        ("0o10", 8),
        ("0x10", 16),
        ("+7", 7),
        ("-7", -7),
        ("72:00:00", "72:00:00"),
        ("12:30", "12:30"),
        ("2026-12-01", "2026-12-01"),
        ("1_000", "1_000"),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("", None),
        (".5", 0.5),
        ("5.", 5.0),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("1e", "1e"),
        ("e5", "e5"),
        ("3w", "3w"),
        ("100GB", "100GB"),
        ("=", "="),
        ("-", "-"),
        (".", "."),
    ],
)
def test_core_schema_scalars(text: str, value: object) -> None:
    resolved = resolve_scalar(text)
    assert resolved == value
    assert type(resolved) is type(value)


def test_quoted_scalars_stay_text() -> None:
    assert parse("a: '1e12'\nb: \"true\"\nc: |\n  10\n") == {"a": "1e12", "b": "true", "c": "10\n"}


def test_explicit_core_tags() -> None:
    assert parse("a: !!str 12\nb: !!int 12") == {"a": "12", "b": 12}


def test_collections_and_aliases_by_value() -> None:
    assert parse("a: &x [1, {b: 2}]\nc: *x\n") == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}


def test_places_of_keys_and_values() -> None:
    source = parse_yaml("a:\n  - b: 10\n    c: text here\n", "f").source
    assert source.locate(("a", 0, "b"), at_key=True) == Place(2, 5, 1)
    assert source.locate(("a", 0, "b")) == Place(2, 8, 2)
    assert source.locate(("a", 0, "c")) == Place(3, 8, 9)
    assert source.locate(("a", 0, "nowhere")) == source.locate(("a", 0))


def test_duplicate_keys_name_both_lines_and_the_first_wins() -> None:
    document = parse_yaml("a: 1\nb: 2\na: 3\n", "f")
    assert [fault.message for fault in document.faults] == [
        "key 'a' is given twice: first on line 1, again on line 3"
    ]
    assert document.faults[0].place == Place(3, 1, 1)
    assert document.data == {"a": 1, "b": 2}


def test_duplicate_sections_keep_the_places_of_the_first() -> None:
    document = parse_yaml("a:\n  x: 1\na:\n  x: 2\n", "f")
    assert document.source.locate(("a", "x")) == Place(2, 6, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<<: {a: 1}", "merge keys"),
        ("a: !custom 3", "tag '!custom' is not allowed"),
        ("a: !!python/object:os.system x", "is not allowed"),
        ("a: !!set {x}", "is not allowed"),
        ("? [a, b]\n: 1", "cannot be a key"),
        ("? {a: b}\n: 1", "cannot be a key"),
        ("*x : 1", "cannot be a key"),
        ("a: *nowhere", "has no anchor"),
        ("a: &x [*x]", "refers to itself"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("a: [1, 2", "not valid YAML"),
        ("a: b: c", "not valid YAML"),
        ("\ta: 1", "not tabs"),
        ("a: @x", "quote text"),
        ("a: " + "9" * 5000, "too long"),
        (r'a: "x\0.yaml"', "holds a NUL character"),
        ("%YAML 9.0\n---\na: 1", "not valid YAML"),
    ],
)
def test_refused(text: str, message: str) -> None:
    found = faults(text)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "{a: " * 50_000, "- " * 50_000])
def test_deep_nesting_is_refused(text: str) -> None:
    assert faults(text) == [f"is nested more than {MAX_DEPTH} levels deep"]


def test_billion_laughs_is_refused_before_it_is_expanded() -> None:
    lines = ['l0: &l0 ["lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol"]']
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert "aliases counted as what they stand for" in faults("\n".join(lines))[0]


def test_syntax_fault_has_its_place() -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml("a: 1\nb: [1,\n", "f")
    place = caught.value.faults[0].place
    assert place is not None
    assert place.line == 3


def test_pure_python_loader_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml

    from planner.inputs import yaml12

    text = "a: &x [1e3, no, 'q']\nb:\n  c: *x\n  d: |\n    text\n"
    fast = parse_yaml(text, "f")
    monkeypatch.setattr(yaml12, "_Loader", yaml.SafeLoader)
    slow = parse_yaml(text, "f")
    assert slow.data == fast.data
    assert slow.source.locate(("b", "c")) == fast.source.locate(("b", "c"))
