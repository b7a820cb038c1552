"""Every module that reads bytes from outside the package has a kind of broken file that reaches it."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.fuzz_parts import Part, put
from benchmarks.fuzz_readers import ONLY_BYTES, READS, every
from tests.architecture.modules import ROOT, module_name, nodes_of, source_files, text_of
from tests.cli.test_broken_files import KINDS

pytestmark = pytest.mark.catalog("small")
_READING = frozenset({"read_limited", "read_unpacked", "read_start", "open_text", "open_copy"})
_NAMES = (*_READING, "read_bytes", '"rb"')


def _reads(call: ast.Call) -> bool:
    """Whether a call reads the bytes of a file."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    modes = [word.value for word in call.args if isinstance(word, ast.Constant)]
    if name == "read_bytes":  # of a path, not a function of that name
        return isinstance(function, ast.Attribute)
    return name in _READING or (name == "open" and modes[:1] == ["rb"])


def _modules() -> Iterator[str]:
    for path in source_files():
        of_files = path.relative_to(ROOT).parts[0] in ("planner", "catalogs")
        named = of_files and any(name in text_of(path) for name in _NAMES)  # found far sooner than the call
        if named and any(isinstance(node, ast.Call) and _reads(node) for node in nodes_of(path)):
            yield module_name(path)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Part]:
    pytest.importorskip("cryptography")
    return every(tmp_path_factory.mktemp("readers") / "made")


def test_every_module_that_reads_bytes_is_listed() -> None:
    assert sorted({*READS, *ONLY_BYTES}) == sorted(set(_modules()))
    assert not READS.keys() & ONLY_BYTES.keys()


def test_every_kind_is_one_of_the_fuzzers(known: Mapping[str, Part]) -> None:
    named = {kind for kinds in READS.values() for kind in kinds}
    assert named <= {*known, *KINDS}
    assert [name for name, part in known.items() if not part.seeds] == []
    assert {*known} - named <= {
        "offers", "evidence", "config.json", "sized candidates",  # through modules that are given the text
    }  # fmt: skip


def test_whole_files_reach_the_modules_that_are_named(known: Mapping[str, Part], tmp_path: Path) -> None:
    reached: set[str] = set()
    for name in {kind for kinds in READS.values() for kind in kinds} & known.keys():
        for at, (suffix, data) in enumerate(known[name].seeds):
            folder = tmp_path / f"{name}-{at}"
            folder.mkdir()
            path = put(known[name], folder, suffix, data)
            reached |= {f"{name}: {module}" for module in _opening(known[name], path)}
    missing = [
        f"{kind}: {module}"
        for module, kinds in READS.items()
        for kind in kinds
        if kind in known and f"{kind}: {module}" not in reached
    ]
    assert missing == []


_AT_WORK: list[set[str]] = []  # modules at work while a file is opened, where somebody listens


def _note(event: str, _: tuple[Any, ...]) -> None:
    if _AT_WORK and event == "open":
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            _AT_WORK[0].add(frame.f_globals.get("__name__", ""))
            frame = frame.f_back


@functools.cache
def _listen() -> None:
    """Hear of what is opened: one hook, for it stays as long as the process, and every event costs time."""
    sys.addaudithook(_note)


def _opening(part: Part, path: Path) -> set[str]:
    """Modules that are at work while files are opened."""
    _listen()
    _AT_WORK.append(set())
    try:
        part.read(path)
        return _AT_WORK[0]
    finally:
        _AT_WORK.clear()
