"""What notebooks import: every public name is there, and asking for the package costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from planner import finops


def test_every_public_name_is_there() -> None:
    assert sorted(finops.__all__) == list(finops.__all__)
    for name in finops.__all__:
        assert getattr(finops, name) is not None
        assert name in dir(finops)


def test_a_name_that_is_not_there_is_an_ordinary_mistake() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'open_bills'"):
        finops.open_bills  # noqa: B018


def test_the_package_alone_imports_nothing_heavy() -> None:
    code = "import sys, planner.finops; print([m for m in ('duckdb', 'numpy', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
