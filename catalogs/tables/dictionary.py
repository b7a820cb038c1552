"""The data dictionary as Markdown, for docs/catalog.md (a test keeps the page equal to columns.csv)."""

from __future__ import annotations

from catalogs.tables.columns import Column, load_columns

BEGIN = "<!-- data dictionary: generated from catalogs/columns.csv, do not edit -->"
END = "<!-- end of data dictionary -->"


def dictionary_markdown() -> str:
    """Every table with its columns, between the two marker lines."""
    lines = [BEGIN, ""]
    for table, columns in load_columns().items():
        lines += [
            f"### {table}",
            "",
            "| column | type | unit | empty allowed | meaning |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {column.name} | {_type(column)} | {column.unit} | {'yes' if column.nullable else 'no'} "
            f"| {_escape(column.description)} |"
            for column in columns
        ]
        lines.append("")
    return "\n".join([*lines, END])


def replace_dictionary(page: str) -> str:
    """Return `page` with its data dictionary section renewed.

    Raises:
        ValueError: when the page lacks the marker lines.
    """
    if BEGIN not in page or END not in page:
        raise ValueError("the page has no data dictionary section")
    return page[: page.index(BEGIN)] + dictionary_markdown() + page[page.index(END) + len(END) :]


def _type(column: Column) -> str:
    if column.choices:
        return " / ".join(f"`{_escape(choice)}`" for choice in column.choices)
    if column.references:
        return f"key of {column.references}"
    bounds = [f"{bound:g}" for bound in (column.low, column.high) if bound is not None]
    return f"{column.dtype} {' to '.join(bounds)}" if bounds else column.dtype


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
