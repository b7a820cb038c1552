"""A process that asks many questions (a notebook, a service) keeps nothing of the answers that it has shown."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import subprocess
import sys
import weakref
from pathlib import Path

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
    gc.freeze()  # what the tests before have left takes a second to look through
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main([word.replace("EX", str(ROOT / "examples")) for word in arguments]) == code
    assert out.getvalue() or err.getvalue()
    streams = [weakref.ref(out), weakref.ref(err)]
    del out, err
    gc.collect()
    assert [stream() for stream in streams] == [None, None]


ARENAS = """
import ctypes, sys, threading
if sys.argv[2] == "asked":
    from planner.cli import main
    main(["--version"])
kept = []
workers = [threading.Thread(target=lambda: kept.append(bytes(100_000))) for _ in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(library.fopen(sys.argv[1].encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
@pytest.mark.parametrize("asked", [False, True])
def test_threads_share_the_memory_that_others_gave_back(tmp_path: Path, asked: bool) -> None:
    """Of a process that asks and goes on; one that asks nothing is left as it is."""
    out = tmp_path / "arenas.xml"
    subprocess.run(
        [sys.executable, "-c", ARENAS, str(out), "asked" if asked else "not"],
        cwd=ROOT, check=True, timeout=120, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    arenas = out.read_text(encoding="utf-8").count("<heap nr=")
    assert arenas == 1 if asked else arenas > 1
