"""The page in a real browser: nothing asked for from outside, nothing to complain of, nothing wider than the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.finops.review.report import render_review
from tests.planner.render.browser import NAMES, Browser, find_browser
from tests.planner.render.sample import hostile_review, sample_review

PROGRAM = find_browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=f"needs a browser on PATH: {', '.join(NAMES)}")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(str(PROGRAM), tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, review in (("sample", sample_review()), ("hostile", hostile_review())):
        text = render_review(review, "html")
        assert isinstance(text, str)
        made[name] = folder / f"{name}.html"
        made[name].write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize("name", ["sample", "hostile"])
def test_the_page_is_quiet_and_fits(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    browser.open(pages[name], width)
    assert browser.requests == [pages[name].as_uri()]
    assert browser.console == []
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.scripts.length + document.images.length") == 0
    assert (
        browser.value("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    )  # its own style was allowed


def test_the_verdict_is_seen_first_on_a_phone(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["sample"], 390, 844)
    assert browser.value("document.querySelector('h1').getBoundingClientRect().bottom") < 844 / 2


@pytest.mark.parametrize(
    ("width", "shown", "hidden"), [(390, ".narrow", ".wide"), (1366, ".wide", ".narrow")]
)
def test_each_width_has_its_own_pictures(
    browser: Browser, pages: dict[str, Path], width: int, shown: str, hidden: str
) -> None:
    browser.open(pages["sample"], width)
    widths = "Array.from(document.querySelectorAll('{} svg')).map(e => e.getBoundingClientRect().width)"
    assert all(0 < found <= width for found in browser.value(widths.format(shown)))
    assert set(browser.value(widths.format(hidden))) == {0}


@pytest.mark.parametrize("width", [390, 1366])
def test_words_in_pictures_are_inside_and_large_enough(
    browser: Browser, pages: dict[str, Path], width: int
) -> None:
    browser.open(pages["sample"], width)
    outside = """Array.from(document.querySelectorAll('svg text')).filter(e => {
        const t = e.getBoundingClientRect(), s = e.closest('svg').getBoundingClientRect();
        const wide = t.left < s.left - 1 || t.right > s.right + 1;
        return t.width > 0 && (wide || t.top < s.top - 1 || t.bottom > s.bottom + 3);
    }).map(e => e.textContent)"""
    assert browser.value(outside) == []
    sizes = """Math.min(...Array.from(document.querySelectorAll('svg text')).map(e => {
        const s = e.closest('svg'), scale = s.getBoundingClientRect().width / s.viewBox.baseVal.width;
        return scale ? parseFloat(getComputedStyle(e).fontSize) * scale : 99;
    }))"""
    assert browser.value(sizes) >= 9.5


def test_on_paper_nothing_is_cut(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["sample"], 695)  # A4 less its margins, at 96 px per inch
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value("document.documentElement.scrollWidth") <= 695
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.call("Emulation.setEmulatedMedia", media="")
    assert browser.print_pdf().startswith(b"%PDF")
