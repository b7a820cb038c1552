"""The page in a real browser: nothing asked for from outside, nothing to complain of, nothing wider than the screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from planner.finops.review.report import render_review
from planner.job.other_limits_report import other_limits_sections
from planner.plan.model import Plan
from planner.plan.report import plan_answer
from planner.render import render_answer
from planner.render.model import Answer, Chart, Column, Figure, Section, Table
from tests.planner.render.browser import NAMES, Browser, find_axe, find_browser
from tests.planner.render.render_plans import EVIL, SPOT, other_limits_of
from tests.planner.render.sample import HOSTILE, hostile_review, sample_review

PROGRAM = find_browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=f"needs a browser on PATH: {', '.join(NAMES)}")

EVIL_PLAN = replace(SPOT, workload="</script><script>alert(1)</script>")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(str(PROGRAM), tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    texts = {
        "sample": render_review(sample_review(), "html"),
        "hostile": render_review(hostile_review(), "html"),
        "plan": render_answer(plan_answer(EVIL_PLAN, verbose=True), "html"),
        "sliders": render_answer(_with_sliders(EVIL_PLAN), "html"),
        "glance": render_answer(_glance(), "html"),
    }
    for name, text in texts.items():
        assert isinstance(text, str)
        made[name] = folder / f"{name}.html"
        made[name].write_text(text, encoding="utf-8")
    return made


def _glance() -> Answer:
    """Tiles with a trend, charts beside each other, rows with grounds behind them, of which some are folded."""
    months = tuple(f"2026-{month:02}" for month in range(1, 11))
    trend = (90.0, None, *map(float, range(92, 100)))
    tile = Figure(
        "spend", "Spend, October 2026", 99.0, "money", note="1.0 % more than September 2026", trend=trend
    )
    charts = (
        Chart("m", "By month", "bars", months, (("spend", trend),), "money", "October.", small=True),
        Chart("t", "By team", "parts", ("research", "Cannot be tagged"), (("spend", (101.0, -2.0)),), "money", "r",
              99.0, small=True),
    )  # fmt: skip
    columns = (
        Column("what", "Action", "text"), Column("saves", "Per month", "money"), Column("sure", "Confidence", "text"),
        Column("owner", "Owner", "text"), Column("why", "Why", "text", place="below"),
        Column("command", "Look closer", "text", place="below"), Column("id", "Id", "text", place="data"),
    )  # fmt: skip
    rows = tuple((f"Move {n}", 1e5 * n, "low", "ml", HOSTILE[n], "planner review --focus " + "x" * 200, "secret-id")
                 for n in range(8))  # fmt: skip
    table = Table("actions", "Actions", columns, rows, shown=5)
    sections = (
        Section("overview", "The month", figures=(tile,), charts=charts), Section("a", "Actions", tables=(table,)),
    )  # fmt: skip
    return Answer("Review", "October cost 99 USD", (), sections, {}, currency="USD")


def test_grounds_and_further_rows_are_folded_and_open(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["glance"], 390)
    assert (
        browser.value("document.querySelectorAll('.trend svg rect').length") == 9
    )  # a gap where nothing is known
    assert browser.value("document.querySelectorAll('details[open]').length") == 0
    assert browser.value("document.querySelectorAll('.rest .below').length") == 3
    browser.value("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    seen = "[...document.querySelectorAll('.below dd')].filter(e => e.getBoundingClientRect().height > 0)"
    assert browser.value(f"{seen}.length") == 16
    assert browser.value("document.documentElement.scrollWidth") <= 390
    assert "secret-id" not in browser.value("document.body.textContent")


def _with_sliders(plan: Plan) -> Answer:
    answer, found = plan_answer(plan, verbose=True), other_limits_of(plan, EVIL)
    return replace(answer, sections=(*other_limits_sections(found, plan), *answer.sections))


@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize("name", ["sample", "hostile", "plan", "sliders", "glance"])
def test_the_page_is_quiet_and_fits(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    browser.open(pages[name], width)
    assert browser.requests == [pages[name].as_uri()]
    assert browser.console == []
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.images.length") == 0
    assert browser.value("document.scripts.length") == (name == "sliders")
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
@pytest.mark.parametrize("name", ["sample", "plan", "sliders"])
def test_words_in_pictures_are_inside_and_large_enough(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.open(pages[name], width)
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


@pytest.mark.parametrize("name", ["sample", "plan"])
def test_on_paper_nothing_is_cut(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.open(pages[name], 695)  # A4 less its margins, at 96 px per inch
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value("document.documentElement.scrollWidth") <= 695
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    folded = "[...document.querySelectorAll('.folded')].map(e => e.getBoundingClientRect().height)"
    assert all(height > 0 for height in browser.value(folded))
    said = "[...document.querySelectorAll('h2 + p')].filter(e => e.nextElementSibling)"
    breaks = browser.value(f"{said}.map(e => getComputedStyle(e).breakAfter)")
    assert breaks and set(breaks) == {
        "avoid"
    }  # "What moved most?" stood at the foot of a page, its chart on the next
    browser.call("Emulation.setEmulatedMedia", media="")
    assert browser.print_pdf().startswith(b"%PDF")


_BROKEN = """[...document.querySelectorAll('tbody td.n, tbody td.d, tbody td.s')].filter(cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(one => Math.round(one.top))).size > 1;
}).map(cell => cell.textContent)"""


@pytest.mark.parametrize("count", [4, 6, 9, 11])
def test_dates_and_ids_are_not_broken_on_paper(browser: Browser, tmp_path: Path, count: int) -> None:
    """`Nov 29 14:00`, `2026-10-03` and `europe-west4` stood in two lines of tables that had room elsewhere."""
    short = ["2026-10-03", "Nov 29 14:00", "europe-west4", "run-7c1e00"]
    columns = tuple(Column(f"c{n}", f"Column {n}", "date" if n % 4 == 1 else "text") for n in range(count))
    row = ("more volume, higher price (+4.8 %) " * 2, *(short[(n - 1) % 4] for n in range(1, count)))
    table = Table("t", "Wide", columns, (row, row))
    path = tmp_path / "wide.html"
    answer = Answer("Wide", "Wide", (), (Section("a", "Wide", tables=(table,)),), {}, currency="USD")
    path.write_text(str(render_answer(answer, "html")), encoding="utf-8")
    browser.open(path, 695)
    browser.call("Emulation.setEmulatedMedia", media="print")
    broken, width = browser.value(_BROKEN), browser.value("document.documentElement.scrollWidth")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert (broken, width <= 695) == ([], True)


def test_a_short_last_section_stays_whole_on_paper(browser: Browser, tmp_path: Path) -> None:
    """The last page of a plan held one line of its proof and the footer."""
    path, first = tmp_path / "pages.html", Section("a", "First", ("Line.",))
    table = Table("t", "Table", (Column("c", "Column", "text"),), (("cell",),))
    kept = []
    for last in (Section("z", "Proof", ("One.", "Two.")), Section("z", "Files", tables=(table,))):
        answer = Answer("Pages", "Pages", (), (first, last), {}, currency="USD")
        path.write_text(str(render_answer(answer, "html")), encoding="utf-8")
        browser.open(path, 695)
        browser.call("Emulation.setEmulatedMedia", media="print")
        style = "getComputedStyle(document.querySelector('main > section:last-child'))"
        footer = browser.value("getComputedStyle(document.querySelector('footer')).breakBefore")
        kept.append((browser.value(f"{style}.breakInside"), browser.value(f"{style}.breakAfter"), footer))
        browser.call("Emulation.setEmulatedMedia", media="")
    assert kept == [("avoid", "avoid", "avoid"), ("auto", "auto", "avoid")]


def test_the_plan_itself_is_held_in_its_page(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["plan"], 1366)
    address = "document.querySelector('a[download=\"plan.json\"]').href"
    held = browser.value(
        f"new TextDecoder().decode(Uint8Array.from(atob({address}.split(',')[1]), c => c.charCodeAt(0)))"
    )
    assert json.loads(held) == EVIL_PLAN.to_dict()


def test_a_link_opens_what_is_folded(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["plan"], 1366)
    shown = "document.querySelector('.folded').checkVisibility({contentVisibilityAuto: true})"
    opened = "document.querySelector('details').open"
    assert not browser.value(opened)
    browser.value("document.querySelector(`nav a[href='#${document.querySelector('.folded').id}']`).click()")
    assert browser.value(opened) and browser.value(shown)


_SEEN = "[...document.querySelectorAll('.pick output > span > span')].map(e => e.textContent)"
_ROW = "[...document.querySelectorAll('.points')[0].querySelectorAll('tbody tr')[{}].cells].map(e => e.textContent)"


def test_a_slider_shows_the_point_it_stands_on(browser: Browser, pages: dict[str, Path]) -> None:
    """By the keyboard alone, and said to who does not see it."""
    browser.open(pages["sliders"], 1366)
    count = browser.value("document.querySelectorAll('.points')[0].querySelectorAll('tbody tr').length")
    columns = len(browser.value(_ROW.format(0)))
    assert browser.value(_SEEN)[:columns] == browser.value(_ROW.format(1))  # the workload's own comes first
    assert not browser.value("document.querySelector('.points').open")
    slider = "document.querySelector('.pick input')"
    assert browser.value(f"{slider}.labels[0].textContent") == "deadline"
    browser.value(f"{slider}.focus()")
    for key in ("ArrowRight", "ArrowRight", "End"):
        browser.press(key)
    assert browser.value(_SEEN)[:columns] == browser.value(_ROW.format(count - 1))
    assert browser.value(f"{slider}.getAttribute('aria-valuetext')") == browser.value(_SEEN)[0]
    browser.press("Home")
    assert browser.value(_SEEN)[:columns] == browser.value(_ROW.format(0))
    assert browser.value("document.querySelector('.pick output').getAttribute('aria-live')") == "polite"


def test_without_scripts_all_points_are_read_as_a_table(browser: Browser, pages: dict[str, Path]) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(pages["sliders"], 1366)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    heights = "[...document.querySelectorAll('{}')].map(e => e.getBoundingClientRect().height)"
    assert set(browser.value(heights.format(".pick"))) == {0}
    assert min(browser.value(heights.format(".points tbody tr"))) > 0


@pytest.mark.parametrize("name", ["sample", "sliders"])
def test_on_a_phone_no_cell_of_a_table_of_few_columns_is_out_of_sight(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name], 390)
    assert browser.value("document.querySelectorAll('.stacked td').length") > 20
    beyond = (
        "[...document.querySelectorAll('.stacked td')].filter(e => e.getBoundingClientRect().right > 390)"
    )
    assert browser.value(f"{beyond}.map(e => e.textContent)") == []


def test_on_a_phone_a_number_that_begins_a_row_is_named(browser: Browser, tmp_path: Path) -> None:
    columns = tuple(Column(f"c{n}", f"Figure {n}", "money") for n in range(6))
    table = Table("points", "Points", columns, (tuple(map(float, range(6))),))
    text = render_answer(
        Answer("Points", "One", (), (Section("p", "Points", tables=(table,)),), {}, currency="USD"), "html"
    )
    (tmp_path / "page.html").write_text(str(text), encoding="utf-8")
    browser.open(tmp_path / "page.html", 390)
    first = "getComputedStyle(document.querySelector('.stacked td'), '::before').content"
    assert "Figure 0" in browser.value(first)


def test_on_a_phone_no_line_ends_within_an_option(browser: Browser, tmp_path: Path) -> None:
    """At any width: each is one box, where a browser would break after its dashes."""
    said = tuple(
        f"{'a' * before} {'word ' * 8}planner budget --fiscal-year-start 2" for before in range(1, 30)
    )
    text = render_answer(Answer("Options", "One", (), (Section("p", "Next", said),), {}), "html")
    (tmp_path / "page.html").write_text(str(text), encoding="utf-8")
    browser.open(tmp_path / "page.html", 390)
    broken = """[...document.querySelectorAll('section p bdi')].filter(e => {
        const node = [...e.childNodes].map(n => n.firstChild || n).find(n => n.textContent.includes('--fiscal'));
        const range = document.createRange(), from = node.textContent.indexOf('--fiscal');
        range.setStart(node, from); range.setEnd(node, from + '--fiscal-year-start'.length);
        return new Set([...range.getClientRects()].map(r => r.top)).size > 1; }).length"""
    assert browser.value(broken) == 0


_AXE = find_axe()
_GRAVE = """axe.run(document, {resultTypes: ['violations']}).then(found => [found.passes.length, found.violations
    .filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => [one.id, one.help, ...one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])])"""


@pytest.mark.skipif(_AXE is None, reason="needs axe-core: pip install --no-deps axe-playwright-python")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("name", "width"),
    [("sample", 1366), ("plan", 1366), ("sliders", 1366), ("sliders", 390), ("glance", 390)],
)
def test_axe_finds_nothing_serious(
    browser: Browser, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    assert _AXE is not None
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(pages[name], width)
    browser.value("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    browser.value(_AXE.read_text(encoding="utf-8"))
    passed, grave = browser.promised(_GRAVE)
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert grave == []
    assert passed > 15


# how light a colour is (0..255), and the least difference to the page behind it of what must be read or told apart
_DIFFERENCES = """(() => {
    const light = c => c.match(/\\d+/g).slice(0, 3).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    const page = light(getComputedStyle(document.body).backgroundColor);
    const seen = [...document.querySelectorAll('h1, h2, p, dt, dd, td, th')].map(e => getComputedStyle(e).color);
    const drawn = [...document.querySelectorAll('.wide svg text')].map(e => getComputedStyle(e).fill);
    return [page, Math.min(...[...seen, ...drawn].map(c => Math.abs(light(c) - page)))];
})()"""


@pytest.mark.parametrize("name", ["sample", "plan"])
@pytest.mark.parametrize(("media", "dark"), [("screen", True), ("print", False)])
def test_words_are_seen_by_night_and_paper_stays_white(
    browser: Browser, pages: dict[str, Path], name: str, media: str, dark: bool
) -> None:
    night = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media=media, features=night)
    browser.open(pages[name], 1366)
    page, difference = browser.value(_DIFFERENCES)
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    assert (page < 64) == dark
    assert difference > 100
