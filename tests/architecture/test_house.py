"""Ratchets: what the house may measure at most. Lower a bound when the measure falls; never raise one."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.house import (
    REGISTRIES,
    circles,
    floors,
    imports_of_files,
    imports_of_rooms,
    loose_modules,
    short_files,
    signatures_with,
)
from tests.architecture.modules import module_names, nodes_of, relative, source_files, syntax_tree, text_of

LOOSE_MODULES = {"planner": 9, "catalogs": 1, "solvers": 0}
CIRCLES_OF_ROOMS = 0
CIRCLES_OF_FILES = 0
FLOORS = 11
CONTEXT_SIGNATURES = 29
SHORT_FILES = 22
FILE_LINES = 400
FUNCTION_LINES = 60


@pytest.mark.parametrize("package", LOOSE_MODULES)
def test_few_modules_lie_loose(package: str) -> None:
    assert len(loose_modules(package)) <= LOOSE_MODULES[package], loose_modules(package)


def test_no_new_circle_of_rooms() -> None:
    found = circles(imports_of_rooms())
    assert len(found) <= CIRCLES_OF_ROOMS, found


def test_no_new_circle_of_files() -> None:
    found = circles(imports_of_files())
    assert len(found) <= CIRCLES_OF_FILES, found


def test_the_house_grows_no_higher() -> None:
    assert floors(imports_of_rooms()) <= FLOORS


def test_few_functions_take_the_whole_context() -> None:
    assert signatures_with("Context") <= CONTEXT_SIGNATURES


def test_no_file_and_no_function_outgrows_its_reader() -> None:
    long_files = [
        f"{relative(path)}: {lines}"
        for path in source_files()
        if (lines := len(text_of(path).splitlines())) > FILE_LINES
    ]
    long_functions = [
        f"{relative(path)}:{node.lineno} {node.name}: {lines}"
        for path in source_files()
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES
    ]
    assert long_files + long_functions == []


def test_few_short_files_are_neither_a_face_nor_an_entry_of_a_registry() -> None:
    assert set(REGISTRIES.values()) <= set(module_names())
    found = short_files()
    assert len(found["others"]) <= SHORT_FILES, found["others"]


def test_every_room_says_what_it_answers() -> None:
    faces = [path for path in source_files() if path.name == "__init__.py"]
    silent = [
        relative(path) for path in faces if len((ast.get_docstring(syntax_tree(path)) or "").split()) < 4
    ]
    assert silent == []


def test_the_measures_see_circles_and_floors() -> None:
    graph = {name: frozenset(targets) for name, targets in (("a", "b"), ("b", "ca"), ("c", "d"), ("d", ""))}
    assert circles(graph) == [["a", "b"]]
    assert floors(graph) == 3
