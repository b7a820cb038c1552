"""The rooms and their walls: who may import whom, and what an import may do."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.architecture.modules import (
    PACKAGES,
    ROOT,
    module_names,
    source_files,
)


def test_import_contracts_hold() -> None:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as c; c()",
        "--no-cache",
        "--no-logo",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


_PROBE = """
import gc, importlib, os, sys
gc.disable()  # a thousand modules make no garbage
root, events = sys.argv[1] + os.sep, []
compiled = sys.pycache_prefix or "__pycache__"
def hook(event, args):
    if any(isinstance(value, str) and compiled in value for value in args):
        return  # what is imported is compiled once, for the tests that come later too
    if event == "open" and isinstance(args[0], str):
        path = os.path.abspath(args[0])
        hidden = os.sep + "." in path[len(root) - 1:]  # a virtual environment, a cache
        if path.startswith(root) and not hidden and not path.endswith((".py", ".pyc")):
            events.append("reads " + path[len(root):])
    elif event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.mkdir", "os.rename"):
        events.append(event)
for name in ("numpy", "pandas", "scipy.optimize", "scipy.sparse", "pydantic", "yaml", "click", "requests"):
    importlib.import_module(name)  # what other people's modules do at import is theirs
sys.addaudithook(hook)
for name in sys.argv[2:]:
    before = len(events)
    importlib.import_module(name)
    events[before:] = [f"{name} {event}" for event in events[before:]]
print("\\n".join(events), flush=True)
os._exit(0)  # and need not be taken down
"""


def test_importing_reads_no_file_and_opens_no_connection() -> None:
    names = sorted(name for name in module_names() if not name.endswith("__main__"))
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, str(ROOT), *names],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_every_package_is_typed() -> None:
    assert all((ROOT / package / "py.typed").is_file() for package in PACKAGES)


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in source_files()}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []
