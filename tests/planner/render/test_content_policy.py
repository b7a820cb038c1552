"""The policy of every page: what it needs is allowed by hash, and nothing that is put into it runs or asks."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planner.finops.review.report import render_review
from tests.conftest import ROOT, CliResult
from tests.planner.render.browser import NAMES, Browser, find_browser
from tests.planner.render.sample import sample_review

Run = Callable[..., CliResult]
PROGRAM = find_browser()
EXAMPLES = ROOT / "examples"
COMMANDS = {
    "plan": ("optimize", str(EXAMPLES / "resnet50-imagenet.yaml")),
    "compare": ("compare", str(EXAMPLES / "bert-large.yaml"), "--pick", "p4d.24xlarge,a2-highgpu-8g"),
    "tco": ("tco", str(EXAMPLES / "tco-2x4090.yaml")),
}
NAMED = (*COMMANDS, "review")
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
pytestmark = pytest.mark.catalog("small")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """A page per name, made once."""
    return {}


def page_of(name: str, pages: dict[str, str], run_cli: Run, tmp_path: Path) -> str:
    if name == "review":
        pages[name] = str(render_review(sample_review(), "html"))
    elif name not in pages:
        out = tmp_path / f"{name}.html"
        done = run_cli(*COMMANDS[name], "-o", "html", "--out", str(out))
        assert done.code == 0, done.stderr
        pages[name] = out.read_text(encoding="utf-8")
    return pages[name]


def _hashes(page: str, tag: str) -> list[str]:
    bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return [
        f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'" for body in bodies
    ]


@pytest.mark.parametrize("name", NAMED)
def test_every_page_has_the_strict_policy(
    name: str, pages: dict[str, str], run_cli: Run, tmp_path: Path
) -> None:
    page = page_of(name, pages, run_cli, tmp_path)
    (policy,) = _POLICY.findall(page)
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == ["'none'"]
    assert rules.pop("style-src") == _hashes(page, "style")
    assert rules.pop("script-src", []) == _hashes(page, "script")
    assert rules == {} and "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index(
        "<style>"
    )  # a policy governs only what follows it
    assert re.search(r'<[^>]+\s(style|on\w+)="', page) is None  # no hash would allow them


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip(f"needs a browser on PATH: {', '.join(NAMES)}")
    opened = Browser(PROGRAM, tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


ATTACKS = """<script>window.ran = 'inline'</script><script src="data:text/javascript,window.ran='data'"></script>
<script src="{beside}"></script><img src="x:" onerror="window.ran='handler'"><svg onload="window.ran='svg'"></svg>
<img id="seen" src="{picture}"><iframe id="frame" srcdoc="<script>parent.ran='frame'</script>"></iframe>
<base href="https://example.org/"><link rel="stylesheet" href="{sheet}"><p id="styled" style="color: rgb(1, 2, 3)">x</p>
<object data="{beside}"></object><a id="go" href="javascript:window.ran='link'">x</a>
<form id="form" action="{beside}"><input name="a"></form>"""


@pytest.mark.parametrize("name", NAMED)
def test_what_is_put_into_a_page_does_not_run(
    name: str, pages: dict[str, str], run_cli: Run, browser: Browser, tmp_path: Path
) -> None:
    """A page with attacks inside, as if something had not been escaped; first the page alone: it misses nothing."""
    text = page_of(name, pages, run_cli, tmp_path)
    clean, attacked = tmp_path / "clean.html", tmp_path / "attacked.html"
    clean.write_text(text, encoding="utf-8")
    browser.open(clean, 1366)
    assert browser.console == [] and browser.requests == [clean.as_uri()]
    for file, content in (("a.js", "window.ran = 'file'"), ("a.css", "body { color: rgb(9, 9, 9) }")):
        (tmp_path / file).write_text(content)
    names = {"beside": "a.js", "sheet": "a.css", "picture": "data:image/gif;base64,R0lGODlhAQABAAAAACw="}
    injected = ATTACKS
    for key, value in names.items():
        address = (tmp_path / value).as_uri() if value[:2] == "a." else value
        injected = injected.replace(f"{{{key}}}", address)
    attacked.write_text(text.replace("<main>", f"<main>{injected}"), encoding="utf-8")
    browser.open(attacked, 1366)
    browser.value("document.getElementById('go').click(); document.getElementById('form').submit()")
    assert browser.value("window.ran") is None
    assert browser.value("location.href") == attacked.as_uri()
    assert browser.value("document.baseURI") == attacked.as_uri()
    assert browser.value("document.getElementById('seen').naturalWidth") == 0
    assert browser.value("getComputedStyle(document.getElementById('styled')).color") != "rgb(1, 2, 3)"
    assert browser.value("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    refused = " ".join(browser.console)
    assert "Content Security Policy" in refused and json.dumps(refused).count("script-src") >= 2
