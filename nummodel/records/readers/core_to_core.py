"""core-to-core-latency: CSV matrices of the latency between two cores, in nanoseconds.

The tool by N. Viennot prints the lower triangle; a full matrix is read too. Cores have no names.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._reading import Column, Malformed, Reading

ROW = re.compile(r"[0-9., ]+")
#: Cells of a matrix in a row, at most.
LARGEST = 5000

COLUMNS = {
    "core": Column("-", "row of the matrix, from 0 on"),
    "other": Column("-", "column of the matrix, from 0 on"),
    "latency": Column("s", "time of a message from one core to the other, one way"),
}


def recognises(text: str) -> bool:
    """Whether a text is a square of numbers without a header and without a diagonal."""
    rows = [cells for _, cells in _rows(text)]
    square = len(rows) > 1 and all(len(cells) == len(rows) for cells in rows)
    return square and all(not _is_figure(cells[i]) for i, cells in enumerate(rows))


def parse(text: str) -> Reading:
    """A row for each pair of cores that the matrix has. Raises Malformed."""
    import pandas as pd

    matrix = _rows(text)
    if not matrix:
        raise Malformed(0, "no row of numbers, expected a square matrix of latencies")
    width = len(matrix[0][1])
    missing, cut = 0, False
    rows: list[dict[str, Any]] = []
    for core, (line, cells) in enumerate(matrix):
        if _is_cut(text, line, core, len(cells), width):
            cut = True
            break
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
    told = [f"Lines of remarks are left out: {_remarks(text)}."] * bool(_remarks(text))
    told += [f"Pairs of cores below the diagonal without a figure: {missing}."] * bool(missing)
    told += ["The last line is cut off and left out."] * cut
    told += [f"The matrix ends after {complete} of {width} rows."] * (complete < width)
    return Reading(pd.DataFrame(rows), COLUMNS, tuple(told))


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """The cells of each line that is no remark, with the number of the line; nothing if a line is
    of something else.
    """
    rows = []
    for line, printed in enumerate(text.split("\n"), 1):
        if not printed.strip() or printed.startswith("#"):
            continue
        if not ROW.fullmatch(printed) or printed.count(",") >= LARGEST:
            return []
        rows.append((line, [cell.strip() for cell in printed.split(",")]))
    return rows


def _remarks(text: str) -> int:
    """How many lines are remarks."""
    return sum(line.startswith("#") for line in text.split("\n"))


def _is_figure(cell: str) -> bool:
    """Whether a cell has a number that is not 0."""
    return bool(cell.strip("0."))


def _is_cut(text: str, line: int, core: int, cells: int, width: int) -> bool:
    """Whether a line is the last one, has no end, and may have lost cells or digits."""
    last = line == text.count("\n") + 1
    return last and (cells < width or core < width - 1)


def _check(cells: list[str], core: int, width: int, line: int) -> None:
    """Raise Malformed unless a row fits into a square matrix that has no diagonal."""
    if core >= width:
        raise Malformed(line, f"row {core + 1}, expected {width} rows of {width} cells")
    if len(cells) != width:
        raise Malformed(line, f"{len(cells)} cells, expected {width}, as in the first row")
    if _is_figure(cells[core]):
        raise Malformed(line, f"{cells[core][:40]!r} of a core with itself, expected an empty cell")
