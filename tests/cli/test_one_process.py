"""A process that asks many questions (a notebook, a service) keeps nothing of the answers that it has shown."""

from __future__ import annotations

import contextlib
import gc
import io
import weakref

import pytest

from planner.cli import main
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("optimize", "EX/bert-large.yaml", "--as-of", "2026-11-20", "-o", "json"), 0),
        (("forecast", "--daily", "EX/daily-costs.csv", "-o", "csv"), 0),
        (("schema",), 0),
        (("export", "--list"), 0),
        (("optimize", "EX/no-such-file.yaml"), 2),
        (("optimize", "--no-such-option"), 2),
    ],
)
def test_what_was_written_to_a_stream_goes_with_it(arguments: tuple[str, ...], code: int) -> None:
    """click keeps a strong reference to each stream that it looks up by itself, with every answer in it."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main([word.replace("EX", str(ROOT / "examples")) for word in arguments]) == code
    assert out.getvalue() or err.getvalue()
    streams = [weakref.ref(out), weakref.ref(err)]
    del out, err
    gc.collect()
    assert [stream() for stream in streams] == [None, None]
