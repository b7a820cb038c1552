"""Checks that a page is whole: every element closed in order, nothing that fetches or runs but its sliders."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.conftest import ROOT

SLIDERS = (ROOT / "planner" / "render" / "templates" / "page.js").read_text(encoding="utf-8")

VOID = frozenset({"meta", "br", "img", "link", "input", "hr"})
_PAGE = "html head meta title style body header nav a small p span h1 h2 h3 main section dl div dt dd figure figcaption"
_MORE = "details summary b br bdi table thead tbody tr th td footer ul li svg desc rect line text path circle"
KNOWN = frozenset(f"{_PAGE} {_MORE} label input output script".split())


def _is_attachment(attrs: list[tuple[str, str | None]]) -> bool:
    """Whether a link saves a file that the page itself holds."""
    given = dict(attrs)
    return str(given.get("href")).startswith("data:application/json;base64,") and bool(given.get("download"))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in KNOWN:
            self.faults.append(f"unknown <{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "src", "srcset", "xlink:href"):
                self.faults.append(f"<{tag} {name}>")
            if name == "href" and not str(value).startswith("#") and not _is_attachment(attrs):
                self.faults.append(f"link to {value}")
            if name == "id":
                self.ids.append(str(value))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] == "script":
            self.faults += [] if data == SLIDERS else ["a script that is not the sliders'"]
        else:
            self.words.append(data)


def read_page(page: str) -> tuple[list[str], str]:
    """Faults of a page, and its text."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    faults = [*reader.faults, *(f"<{tag}> stays open" for tag in reader.stack)]
    faults += [f"id {name} twice" for name in set(reader.ids) if reader.ids.count(name) > 1]
    return faults, " ".join(" ".join(reader.words).split())
