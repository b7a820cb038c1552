"""What every answer can do: be printed, shown in a notebook, become a frame or plain values, and be saved.

A question's result is a `Presentable` and names the function that says how it reads; the rest follows from that.
That function, renderers, and pandas for frames, are imported when they are asked for.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from planner.render.formats import FORMATS, format_of

if TYPE_CHECKING:
    import pandas as pd

    from planner.render.model import Answer
    from planner.render.notebook import Shown


class Presentable:
    """An answer of the public API.

    Attributes:
        REPORT: `module:function` that makes the `Answer` of an instance.
    """

    REPORT: ClassVar[str]

    def report(self) -> Answer:
        """The answer as sections of figures, tables, charts and notes."""
        module, _, name = self.REPORT.partition(":")
        return cast("Answer", getattr(importlib.import_module(module), name)(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain values with units in the key names: what `-o json` writes."""
        return dict(self.report().values)

    def to_frame(self) -> pd.DataFrame:
        """The flat rows of `-o csv` as a DataFrame; numbers are numbers, money that must be exact stays Decimal."""
        import pandas as pd

        report = self.report()
        return pd.DataFrame([dict(row) for row in report.rows], columns=list(report.columns))

    def render(self, fmt: str = "table", *, width: int = 100) -> str | bytes:
        """The answer in one of the formats of `-o` (bytes for `xlsx`).

        Raises:
            InputError: there is no such format, or the answer has no such form.
        """
        from planner.errors import InputError
        from planner.render import FORMATS, render_answer

        if fmt not in FORMATS:
            raise InputError(f"format {fmt!r}: is not known; known are {', '.join(FORMATS)}")
        return render_answer(self.report(), fmt, width=width)

    def save(self, path: str | Path, fmt: str | None = None) -> Path:
        """Write the answer to a file, whole or not at all.

        Args:
            path: where to; its ending names the format (`plan.json`, `plan.html`, `plan.xlsx`).
            fmt: the format, where the ending does not tell.

        Raises:
            InputError: the ending is of no known format.
        """
        from planner.errors import InputError
        from planner.files import write_atomically

        target = Path(path)
        chosen = fmt or format_of(target.name)
        if chosen is None:
            known = ", ".join(sorted(f".{one.extension}" for one in FORMATS.values()))
            raise InputError(f"{target}: the ending names no format; known are {known}")
        write_atomically(target, self.render(chosen))
        return target

    def plot(self, key: str = "") -> Shown:
        """One chart of the answer, which a notebook draws as SVG without a plotting library.

        Args:
            key: of the chart, such as `cost_by_deadline`; empty: the first.

        Raises:
            InputError: the answer has no such chart; names those that it has.
        """
        from planner.errors import InputError
        from planner.render.notebook import show

        report = self.report()
        charts = {chart.key: chart for section in report.sections for chart in section.charts}
        wanted = key or next(iter(charts), "")
        if wanted not in charts:
            known = f"; known are {', '.join(charts)}" if charts else ": it has none"
            raise InputError(f"chart {key!r}: the answer of {report.topic} has no such chart{known}")
        return show(charts[wanted], report.currency)

    def _repr_html_(self) -> str:
        """The answer in a notebook."""
        from planner.render.notebook import show_answer

        return show_answer(self.report())

    def __repr__(self) -> str:
        """One line; `print` shows the whole answer."""
        return f"<{type(self).__name__}: {self.report().title}>"

    def __str__(self) -> str:
        """The answer as a table for people."""
        text = self.render()
        assert isinstance(text, str)
        return text
