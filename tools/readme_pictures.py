"""Make the pictures of README: a terminal session as SVG (by rich) and the page of a plan as PNG (by a browser).

    python -m tools.readme_pictures

Both are of the plan of one example on the day below. The session shows the first block of README, and a test compares
the two texts. The PNG is made where Chromium is on PATH.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from planner.asked.given import options_on
from planner.inputs.load import load_workload
from planner.plan.model import Plan
from planner.plan.report import plan_answer
from planner.render import render_answer
from planner.workloads.answer import Answer, optimize
from planner.workloads.page import with_other_limits

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
FILE, DAY = "examples/llama-3-8b.yaml", "2026-11-20"
_COLUMNS = 100
_WIDTH_PX, _HEIGHT_PX = 960, 1080
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def session_svg(plan: Plan) -> str:
    """The command and what it prints at a terminal, in colour, as a picture that loads no font."""
    printed = render_answer(plan_answer(plan), "table", width=_COLUMNS, color=True)
    assert isinstance(printed, str)
    with tempfile.TemporaryFile("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=_COLUMNS, file=nowhere, force_terminal=True)
        command = f"$ planner optimize {FILE} --as-of {DAY}"
        console.print(Text.from_ansi(f"{command}\n{printed.rstrip()}"), soft_wrap=True)
        # rich names faces on a network; any fixed-width one of the reader is enough
        layout = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        return console.export_svg(title="planner", code_format=layout, unique_id="session")


def page_png(answer: Answer, browser: str, target: Path) -> None:
    """What the page of the same plan adds to the screen: verdict, frontier and sliders."""
    shown = replace(plan_answer(answer.plan), front=(), sections=(), attached="")
    page = render_answer(with_other_limits(shown, answer), "html")
    assert isinstance(page, str)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.html"
        file.write_text(page, encoding="utf-8")
        profile = f"--user-data-dir={folder}/profile"
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", profile)
        taken = (f"--window-size={_WIDTH_PX},{_HEIGHT_PX}", f"--screenshot={target}", file.as_uri())
        subprocess.run([browser, *options, *taken], check=True, capture_output=True)  # noqa: S603 - a page made here


def main() -> None:
    """Write both pictures."""
    answer = optimize(load_workload(ROOT / FILE), options_on(DAY))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "session.svg").write_text(session_svg(answer.plan), encoding="utf-8")
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is not None:
        page_png(answer, browser, FOLDER / "page.png")


if __name__ == "__main__":
    main()
