"""`planner mcp` with the SDK's own client over stdio, and the walls around what an assistant may ask."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from catalogs.errors import CatalogInputError
from planner.api.assistant import MOST_OFFERS, Assistant, refuse_network
from planner.errors import InputError
from tests.conftest import Run
from tests.planner.finops.small_bill import each_day, write_bill

DAY = "2026-11-20"
TEXT = """version: 1
name: small
model: {preset: bert-base}
training: {samples: 1e6, global_batch: 256, sequence_length: 128}
constraints: {deadline: 30d, max_nodes: 2, providers: [lambda], purchase_options: [on_demand]}
"""
pytestmark = pytest.mark.catalog("small")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "small.yaml").write_text(TEXT, encoding="utf-8")
    return home


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the extra 'mcp' is not installed")
def test_an_assistant_asks_over_stdio(folder: Path, run_cli: Run) -> None:
    """In a process of its own: the client starts a server, and its imports would cost every later test."""
    before = content_of(folder)
    done = subprocess.run(
        [sys.executable, "-c", _CLIENT, sys.executable, str(folder), TEXT],
        capture_output=True, text=True, check=False, timeout=300, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["tools"] == ["optimize", "estimate", "compare", "price", "review"]
    assert said["read_only"] == [True] * 5 and all(said["described"])
    plan = json.loads(said["optimize"]["text"])
    alone = run_cli("optimize", str(folder / "small.yaml"), "--as-of", DAY, "-o", "json")
    assert plan["total_usd"] == json.loads(alone.stdout)["total_usd"]
    assert plan["run_id"] == json.loads(alone.stdout)["run_id"]
    assert "gpu_1x_a10" in said["estimate"]["text"]
    assert "| " in said["compare"]["text"] and "lambda" in said["price"]["text"]
    outside = said["outside"]
    assert outside["error"] and "is outside" in outside["text"] and "root:" not in outside["text"]
    unknown = said["unknown"]  # a limit that was dropped would make a wrong answer
    assert unknown["error"] and "has no argument deadline; it has workload, settings" in unknown["text"]
    assert said["closed"] == [False] * 5
    assert content_of(folder) == before


_CLIENT = """
import json, os, sys
import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

python, folder, text = sys.argv[1:]

async def main():
    server = StdioServerParameters(command=python, args=["-m", "planner", "mcp"], cwd=folder, env=dict(os.environ))
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        said = {"tools": [tool.name for tool in tools],
                "read_only": [tool.annotations.read_only_hint for tool in tools],
                "closed": [tool.input_schema["additionalProperties"] for tool in tools],
                "described": [tool.description for tool in tools]}
        for name, tool, given in (
            ("optimize", "optimize", {"workload": text, "as_of": "2026-11-20", "form": "json"}),
            ("estimate", "estimate", {"workload": "small.yaml", "instance_types": ["gpu_1x_a10"]}),
            ("compare", "compare", {"workload": "small.yaml", "over": "type", "as_of": "2026-11-20"}),
            ("price", "price", {"accelerator": "h100-*", "provider": "lambda", "max_results": 3}),
            ("outside", "optimize", {"workload": "/etc/passwd"}),
            ("unknown", "optimize", {"workload": text, "deadline": "1h"}),
        ):
            result = await client.call_tool(tool, given)
            said[name] = {"error": result.is_error, "text": result.content[0].text}
        print(json.dumps(said))

anyio.run(main)
"""


def test_no_file_outside_the_folder_is_read(folder: Path) -> None:
    desk = Assistant(folder)
    secret = folder.parent / "secret.yaml"
    secret.write_text("password: x\n", encoding="utf-8")
    (folder / "link.yaml").symlink_to(secret)
    bill = folder / "bill"
    bill.mkdir()
    (bill / "link.csv").symlink_to(secret)
    asked: list[Callable[[], Any]] = [
        lambda: desk.optimize("../secret.yaml"),
        lambda: desk.optimize(str(secret)),
        lambda: desk.optimize("link.yaml"),
        lambda: desk.optimize(TEXT + "storage: {fio: ../secret.yaml}\n"),
        lambda: desk.optimize(TEXT + "spot: {evidence: [link.yaml]}\n"),
        lambda: desk.review([".."]),
        lambda: desk.review(["bill"]),
    ]
    for ask in asked:
        with pytest.raises(InputError, match="is outside"):
            ask()


def test_answers_and_questions_have_limits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Assistant(folder)
    with pytest.raises(InputError, match="is larger than"):
        desk.optimize(TEXT + "#" * (1 << 20))
    with pytest.raises(InputError, match=f"must be 1 to {MOST_OFFERS}"):
        desk.price(max_results=MOST_OFFERS + 1)
    with pytest.raises(InputError, match="the catalog has no accelerator 'nimbus'"):
        desk.price(accelerator="nimbus")
    with pytest.raises(CatalogInputError, match="unknown provider 'nimbus'"):
        desk.price(provider="nimbus")
    monkeypatch.setattr("planner.api.assistant.MOST_CHARACTERS", 100)
    with pytest.raises(InputError, match="ask for less"):
        desk.optimize("small.yaml", as_of=DAY)


def test_questions_without_machines(folder: Path) -> None:
    desk = Assistant(folder)
    plan = json.loads(desk.optimize("small.yaml", as_of=DAY, form="json"))
    answer = json.loads(desk.estimate("small.yaml", as_of=DAY, form="json"))
    (estimate,) = answer["estimates"]
    assert estimate["instance_type"] == plan["lines"][0]["instance_type"]
    both: list[Callable[[], str]] = [
        lambda: desk.compare("small.yaml"),
        lambda: desk.compare("small.yaml", ("gpu_1x_a10",), "type"),
    ]
    for ask in both:
        with pytest.raises(InputError, match="either instance_types or over"):
            ask()


def test_prices_as_json_name_their_source(folder: Path) -> None:
    offers = json.loads(Assistant(folder).price(provider="lambda", max_results=2, form="json"))["offers"]
    assert len(offers) == 2 and all(offer["source"] and offer["as_of"] for offer in offers)


def test_the_process_has_no_network() -> None:
    refuse_network("open", ("a file",))
    for event in ("socket.connect", "socket.getaddrinfo"):
        with pytest.raises(PermissionError, match="planner mcp has no network"):
            refuse_network(event, ())


def test_the_verdict_on_a_bill(folder: Path) -> None:
    write_bill(folder / "bill", each_day(date(2026, 9, 1), date(2026, 10, 31), 100))
    text = Assistant(folder).review(["bill"], month="2026-10")
    assert text.startswith("# ") and "\n- **" in text


def test_without_the_extra_its_name_is_said(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mcp", "mcp_types")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "planner.api.assistant_server", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Missing(), *sys.meta_path])
    result = run_cli("mcp")
    assert result.code == 2 and "ml-training-planner[mcp]" in result.stderr


class _Missing:
    """Finds no SDK."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "mcp":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
