"""core-to-core-latency: matrices of the latency between two cores, in nanoseconds.

The tool by N. Viennot prints the lower triangle, as CSV (--csv) or, in whole nanoseconds, on the
screen. A full matrix of CSV is read too. Cores have no names.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._output import CUT, OUTSIDE
from nummodel.records.readers._reading import Column, Malformed, Reading

ROW = re.compile(r"[0-9., ]+")
#: The screen: cores, and a row of one of them.
CORES = re.compile(r"\s*0(?:\s+[0-9]{1,4})+\s*")
SCREEN = re.compile(r"\s*([0-9]{1,4})((?:\s+[0-9]{1,9}±[0-9]{1,9})*)\s*")
#: Cells of a matrix in a row, at most.
LARGEST = 5000

COLUMNS = {
    "core": Column("-", "row of the matrix, from 0 on"),
    "other": Column("-", "column of the matrix, from 0 on"),
    "latency": Column("s", "time of a message from one core to the other, one way"),
}


def recognises(text: str) -> bool:
    """Whether a text has a square of numbers without a header and without a diagonal."""
    rows = [cells for _, cells in _rows(text)[0]]
    square = len(rows) > 1 and all(len(cells) == len(rows) for cells in rows)
    return square and all(not _is_figure(cells[i]) for i, cells in enumerate(rows))


def parse(text: str) -> Reading:
    """A row for each pair of cores that the matrix has. Raises Malformed."""
    import pandas as pd

    matrix, outside = _rows(text)
    if not matrix:
        raise Malformed(0, "no row of numbers, expected one square matrix of latencies (--csv)")
    width = len(matrix[0][1])
    last, cells = matrix[-1]
    # A last line without an end may have lost cells or digits.
    ended = "±" in text or last <= text.count("\n")
    cut = not ended and (len(cells) < width or len(matrix) < width)
    missing = 0
    rows: list[dict[str, Any]] = []
    for core, (line, cells) in enumerate(matrix[: len(matrix) - cut]):
        _check(cells, core, width, line)
        missing += sum(not cell for cell in cells[:core])
        rows += [
            {"core": core, "other": other, "latency": scaled(cell, -9, line, "latency")}
            for other, cell in enumerate(cells)
            if cell and other != core
        ]
    if not rows:
        raise Malformed(0, "no latency, expected a matrix with figures below its diagonal")
    complete = len(matrix) - cut
    told = [f"{OUTSIDE}: {outside}."] * bool(outside)
    told += [f"Pairs of cores below the diagonal without a figure: {missing}."] * bool(missing)
    told += [CUT] * cut
    told += [f"The matrix ends after {complete} of {width} rows."] * (complete < width)
    return Reading(pd.DataFrame(rows), COLUMNS, tuple(told))


def _rows(text: str) -> tuple[list[tuple[int, list[str]]], int]:
    """The cells of each row, with the number of its line, and how many lines are no rows; no row at
    all if other lines have commas, as tables have, or if there are several screens.
    """
    lines = [(at, line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    if "±" in text:
        return _screen([(at, line[:50_000]) for at, line in lines])
    rows, outside = [], 0
    for at, line in lines:
        if ROW.fullmatch(line):
            rows.append((at, [cell.strip() for cell in line.split(",")]))
        elif "," in line and not line.lstrip().startswith("#"):
            return [], 0
        else:
            outside += 1
    return ([], 0) if any(len(cells) > LARGEST for _, cells in rows) else (rows, outside)


def _screen(lines: list[tuple[int, str]]) -> tuple[list[tuple[int, list[str]]], int]:
    """As `_rows`, of the screen."""
    heads = [line.split() for _, line in lines if CORES.fullmatch(line)]
    if len(heads) != 1:
        return [], 0
    found = [(at, match[2].split()) for at, line in lines if (match := SCREEN.fullmatch(line))]
    rows = [(at, [cell.partition("±")[0] for cell in cells]) for at, cells in found]
    width = len(heads[0])
    return [(at, cells + [""] * (width - len(cells))) for at, cells in rows], len(lines) - len(
        rows
    ) - 1


def _is_figure(cell: str) -> bool:
    """Whether a cell has a number that is not 0."""
    return bool(cell.strip("0."))


def _check(cells: list[str], core: int, width: int, line: int) -> None:
    """Raise Malformed unless a row fits into a square matrix that has no diagonal."""
    if core >= width:
        raise Malformed(line, f"row {core + 1}, expected {width} rows of {width} cells")
    if len(cells) != width:
        raise Malformed(line, f"{len(cells)} cells, expected {width}, as in the first row")
    if _is_figure(cells[core]):
        raise Malformed(line, f"{cells[core][:40]!r} of a core with itself, expected an empty cell")
