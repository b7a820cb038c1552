"""Broken files that options and keys name end in an answer or a named error; `benchmarks.fuzz_parts` tries more."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.fuzz_parts import NUMBERS, Part, outcome, parts, put, tried
from catalogs.errors import CatalogError
from planner.asked.calls import as_planner_error
from planner.errors import PlannerError
from tests.long_values import quoted_whole, with_long_values

SEED = int(os.environ.get("PLANNER_FUZZ_SEED", "1"))
COUNT = 300
KINDS = (
    "map file", "rates", "utilisation", "usage", "ledger", "saved forecast", "traces", "spot prices",
    "waiting records", "fio", "quotations", "jobs of a portfolio", "sized candidates", "demand", "scenarios",
    "forecast of a schedule", "speeds", "script in Python", "notebook", "config.json", "public key", "private key",
    "signed statement", "calibration", "results of a sweep", "manifest of a cube",
)  # fmt: skip
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the time limit is an alarm of POSIX")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Part]:
    pytest.importorskip("cryptography")
    return parts(tmp_path_factory.mktemp("made"))


def test_every_part_is_broken(known: Mapping[str, Part]) -> None:
    assert set(known) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_part_is_read_so_that_broken_ones_are_read_beyond_their_names(
    known: Mapping[str, Part], kind: str, tmp_path: Path
) -> None:
    for at, (suffix, data) in enumerate(known[kind].seeds):
        folder = tmp_path / str(at)
        folder.mkdir()
        known[kind].read(put(known[kind], folder, suffix, data))


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_part_ends_in_an_answer_or_a_named_error(
    known: Mapping[str, Part], kind: str, tmp_path: Path
) -> None:
    assert list(tried(kind, known[kind], COUNT, SEED, tmp_path)) == [], f"PLANNER_FUZZ_SEED={SEED}"


@pytest.mark.parametrize("kind", KINDS)
def test_odd_numbers_in_a_part_end_in_an_answer_or_a_named_error(
    known: Mapping[str, Part], kind: str, tmp_path: Path
) -> None:
    """Times, counts and amounts of 400 and 5,000 digits, and digits of other scripts, ended in internal errors."""
    part = known[kind]
    for suffix, data in part.seeds[:4]:
        for found in list(re.finditer(rb"(?<![\w.])[0-9.]+", data))[:20]:
            for number in NUMBERS:
                odd = data[: found.start()] + number + data[found.end() :]
                assert outcome(part, put(part, tmp_path, suffix, odd)) == "", (found, number[:8])


@pytest.mark.parametrize("kind", KINDS)
def test_no_message_quotes_a_long_value_of_a_part_whole(
    known: Mapping[str, Part], kind: str, tmp_path: Path
) -> None:
    """Classes, metrics, fields and units of 3,000 characters were quoted to their end."""
    part = known[kind]
    for suffix, data in part.seeds[:4]:
        for odd in with_long_values(data.decode("utf-8"), suffix):
            path = put(part, tmp_path, suffix, odd.encode("utf-8"))
            try:
                part.read(path)
            except (PlannerError, CatalogError) as error:
                said = as_planner_error(error)
                assert said is not None and not quoted_whole(str(said))
