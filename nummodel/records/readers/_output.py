"""The lines of a tool in a text that may have others: heads, rows, and what stands around them."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from nummodel.records.readers._reading import Column, Malformed, Reading, number

#: A function that takes a line, its cells and its number, or says that the line is no such one.
Take = Callable[[str, list[str], int], bool]
FIGURE = re.compile(r"-?(?:[0-9]{1,20}(?:[.,][0-9]{1,20})?|\.[0-9]{1,20})%?", re.ASCII)
OUTSIDE = "Lines outside of the tables, such as commands, are left out"
CUT = "The last line is cut off and left out."


def take(text: str, head: Take, row: Take, whole: Callable[[str], bool]) -> list[str]:
    """Give each line to `head` and then to `row`, and return what to say of the others.

    A line of figures that is no row is Malformed right below a line of the tool, and is one of the
    others elsewhere. The tool's last line is left out if it is Malformed, or if it has no line end
    and is not `whole`.
    """
    lines = text.split("\n")
    outside, rows, inside, wrong = 0, 0, False, None
    for at, line in enumerate(lines, 1):
        cells = line.split()
        if not cells:
            continue
        try:
            if at == len(lines) and not whole(line):
                raise Malformed(at, "a line that is cut off, expected its end")
            is_head = head(line, cells, at)
            is_row = not is_head and _is_row(row, line, cells, at, inside)
            inside = is_head or is_row
            if wrong and (inside or are_figures(cells)):
                raise wrong
        except Malformed as error:
            if wrong:
                raise wrong from None
            wrong = error
            continue
        rows += is_row
        outside += not inside
    if wrong and not rows:
        raise wrong
    return [f"{OUTSIDE}: {outside}."] * bool(outside) + [CUT] * bool(wrong)


def _is_row(row: Take, line: str, cells: list[str], at: int, inside: bool) -> bool:
    """Whether a line is a row. Raises Malformed for figures `inside` of a table that are none."""
    try:
        known = row(line, cells, at)
    except Malformed:
        if inside:
            raise
        return False
    if inside and not known and are_figures(cells):
        raise Malformed(at, f"{cells[0][:40]!r} begins no line of the output")
    return known


def table_of(
    rows: list[dict[str, Any]], columns: dict[str, Column], told: Iterable[str], expected: str
) -> Reading:
    """A table with the columns that its rows have, and their `part` if there are several. Raises
    Malformed if there is no row.
    """
    import pandas as pd

    if not rows:
        raise Malformed(0, expected)
    several = len({row.get("part") for row in rows}) > 1
    known = {name for row in rows for name in row if several or name != "part"}
    used = [name for name in columns if name in known]
    return Reading(pd.DataFrame(rows)[used], {name: columns[name] for name in used}, tuple(told))


def are_figures(cells: list[str]) -> bool:
    """Whether most of at least three cells are figures."""
    figures = sum(FIGURE.fullmatch(cell) is not None for cell in cells)
    return figures > 2 and 2 * figures > len(cells)


@lru_cache(maxsize=100_000)
def _figure(cell: str) -> float:
    return number(cell, 0, "")


def figures(cells: list[str], names: list[str], at: int) -> list[float]:
    """The figures of a row. Raises Malformed for the first cell that is no number."""
    if len(cells) != len(names):
        raise Malformed(at, f"{len(cells)} figures, expected {len(names)} as in the header")
    try:
        return [_figure(cell) for cell in cells]
    except Malformed:
        return [number(cell, at, name) for cell, name in zip(cells, names, strict=True)]
