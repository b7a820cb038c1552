"""Charts are well-formed, show every value, and carry no markup from names."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

from planner.simulation.svg import Chart, Dot, Row, draw

SVG = "{http://www.w3.org/2000/svg}"


def test_marks_and_labels() -> None:
    rows = (
        Row("zone <a> & b", (Dot("one", 0.4, 0.3, 0.5), Dot("two", 0.6))),
        Row("none", (Dot("one", math.nan),)),
        Row("far", (Dot("two", 3.0),), strong=True),
    )
    text = draw(Chart("Title", "share", rows, marks=(1.0,), limits=(0.0, 1.0)))
    tree = ET.fromstring(text)
    texts = [element.text for element in tree.iter(f"{SVG}text")]
    assert {"Title", "share", "zone <a> & b", "one", "two", "▸ 3"} <= set(texts)
    assert len(list(tree.iter(f"{SVG}circle"))) == 1 + 1  # the legend's and one value: NaN is not drawn
    assert draw(Chart("Title", "share", rows, marks=(1.0,), limits=(0.0, 1.0))) == text


def test_an_axis_from_the_data_holds_it() -> None:
    tree = ET.fromstring(draw(Chart("t", "a", (Row("r", (Dot("s", 0.31), Dot("s", 0.32))),))))
    width = float(tree.get("width", "0"))
    assert all(0 < float(circle.get("cx", "-1")) < width for circle in tree.iter(f"{SVG}circle"))
    assert draw(Chart("t", "a", ())).startswith("<svg")
