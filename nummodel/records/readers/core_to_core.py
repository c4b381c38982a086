"""core-to-core-latency: matrices of the latency between two cores, in nanoseconds.

The tool by N. Viennot prints the lower triangle, as CSV (--csv) or, in whole nanoseconds, on the
screen. A full matrix of CSV is read too. Cores have no names.
"""

import re

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._output import CUT, OUTSIDE
from nummodel.records.readers._reading import Column, Malformed, Reading

ROW = re.compile(r"[0-9., ]+")
#: A line of another table.
OTHER = re.compile(r"^(?!\s*#)(?![0-9., ]+$).*,", re.MULTILINE)
#: The screen: cores, and a row of one of them.
CORES = re.compile(r"\s*0(?:\s+[0-9]{1,4})+\s*")
SCREEN = re.compile(r"\s*[0-9]{1,4}((?:\s+[0-9]{1,9}±[0-9]{1,9})*)\s*")
COLUMNS = {
    "core": Column("-", "row of the matrix, from 0 on"),
    "other": Column("-", "column of the matrix, from 0 on"),
    "latency": Column("s", "time of a message from one core to the other, one way"),
}


def recognises(text: str) -> bool:
    """Whether a text has a square of numbers without a header and without a diagonal."""
    rows = [cells for _, cells in _rows(text)]
    square = len(rows) > 1 and all(len(cells) == len(rows) for cells in rows)
    return square and all(not cells[i].strip("0.") for i, cells in enumerate(rows))


def parse(text: str) -> Reading:
    """A row for each pair of cores that the matrix has. Raises Malformed."""
    import pandas as pd

    rows = _rows(text)
    if not rows:
        raise Malformed(0, "no row of numbers, expected one square matrix of latencies (--csv)")
    width, lines = len(rows[0][1]), len(re.findall(r"^.*\S", text, re.MULTILINE))
    outside = lines - len(rows) - ("±" in text)
    # A last line without an end may have lost cells or digits.
    ended = "±" in text or rows[-1][0] <= text.count("\n")
    cut = not ended and min(len(rows[-1][1]), len(rows)) < width
    whole = [(core, *row) for core, row in enumerate(rows[: len(rows) - cut])]
    for core, line, cells in whole:
        _check(core, line, cells, width)
    pairs = [
        {"core": core, "other": other, "latency": scaled(cell, -9, line, "latency")}
        for core, line, cells in whole
        for other, cell in enumerate(cells)
        if cell and other != core
    ]
    missing = sum(cells[:core].count("") for core, _, cells in whole)
    told = [f"{OUTSIDE}: {outside}."] * bool(outside)
    told += [f"Pairs of cores below the diagonal without a figure: {missing}."] * bool(missing)
    told += [CUT] * cut
    told += [f"The matrix ends after {len(whole)} of {width} rows."] * (len(whole) < width)
    if not pairs:
        raise Malformed(0, "no latency, expected a matrix with figures below its diagonal")
    return Reading(pd.DataFrame(pairs), COLUMNS, tuple(told))


def _check(core: int, line: int, cells: list[str], width: int) -> None:
    """Raise Malformed unless a row fits into a square matrix that has no diagonal."""
    if len(cells) != width or core >= width:
        wanted = f"expected {width} rows of {width} cells"
        raise Malformed(line, f"row {core + 1} has {len(cells)} cells, {wanted}")
    if cells[core].strip("0."):
        raise Malformed(line, f"{cells[core][:40]!r} of a core with itself, expected nothing")


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """The cells of each row, with the number of its line; none if other lines have commas, as
    tables have.
    """
    lines = [(at, line[:50_000]) for at, line in enumerate(text.split("\n"), 1)]
    if "±" in text:
        return _screen(lines)
    if OTHER.search(text):
        return []
    rows = [(at, line) for at, line in lines if ROW.fullmatch(line) and line.strip()]
    return [(at, [*map(str.strip, line.split(","))]) for at, line in rows]


def _screen(lines: list[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """As `_rows`, of the screen; no row if there are several screens."""
    heads = [line.split() for _, line in lines if CORES.fullmatch(line)]
    if len(heads) != 1:
        return []
    found = [(at, match[1]) for at, line in lines if (match := SCREEN.fullmatch(line))]
    rows = [(at, re.findall("([0-9]+)±", cells)) for at, cells in found]
    return [(at, cells + [""] * (len(heads[0]) - len(cells))) for at, cells in rows]
