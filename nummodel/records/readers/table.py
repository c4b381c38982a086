"""Delimited text with a header row: commas, semicolons, tabs or blanks, or a table of Markdown or a
database; lines with # are comments, but for a header above rows that have none.

Where commas part no cells, a number may have a decimal comma.
"""

import csv
import re
from collections import Counter
from collections.abc import Collection
from itertools import chain, compress, count
from pathlib import Path
from typing import Any

import numpy as np

from nummodel.errors import InputError
from nummodel.records.readers._reading import Column, Malformed, Reading

#: A number with a decimal comma, and one whose comma may part thousands.
COMMA = re.compile("[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?")
THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")
#: A number whose point may part thousands.
POINTED = re.compile(r"[-+]?[1-9][0-9]{0,2}(\.[0-9]{3})+")
#: The number of rows, below the table of a database.
ROWS = re.compile(r"\([0-9]+ rows?\)|[0-9]+ rows? in set.*|Time: [0-9.]+ ms")
#: Characters of a table, at most: some 600,000 rows, which take half a gigabyte and 20 s.
LARGEST = 10_000_000


class Cells(dict[str, dict[Any, str]]):
    """The cells of each column as text, by line number or the name of a run; what parts digits."""

    decimal = "."

    def of(self, columns: dict[str, dict[Any, str]]) -> "Cells":
        """Other columns with the same digits."""
        cells = Cells(columns)
        cells.decimal = self.decimal
        return cells


def read(text: str, path: str | Path) -> Cells:
    """The columns of a delimited text that was in a file. Raises InputError."""
    try:
        return cells_of(text)
    except Malformed as error:
        raise error.at(path) from None


def recognises(text: str) -> bool:
    """Whether the first lines of a text have cells, as many in each."""
    begin = text if len(text) <= 20000 else text[:20000].rpartition("\n")[0]
    lines = [line for line in begin.split("\n") if line.strip() and not _is_left_out(line)][:10]
    rows, delimiter = _parted(lines, next(iter(lines), ""))
    cells = [row.split(delimiter) for row in rows]
    if len(cells) < 2 or {*map(len, cells)} != {max(2, len(cells[0]))}:
        return False
    numbers = [any(map(is_number, row)) for row in cells]
    blanks = rows != lines and delimiter == "\t"  # which stand in any text
    return not blanks or (all(numbers[1:]) and not numbers[0])


def _is_left_out(line: str) -> bool:
    """Whether a line is a comment, or only rules off the header of a table, as in Markdown. Excel
    may name the delimiter in a first line such as "sep=;", and a database counts rows in the last.
    """
    rule = "--" in line and not line.strip("-|:+= \t")
    return rule or line.startswith(("#", "sep=")) or ROWS.fullmatch(line.strip()) is not None


def parse(text: str) -> Reading:
    """The columns as they are called: numbers as numbers, the rest as text."""
    return reading(cells_of(text, least=1))


def reading(cells: Cells) -> Reading:
    """Cells as a table: columns of numbers as numbers, the rest as text."""
    import pandas as pd

    columns = {}
    for name in cells:
        try:
            columns[name] = numbers(cells, name, "", positive=False)
        except InputError:
            columns[name] = np.array([*cells[name].values()], dtype=object)
    meanings = {name: Column("-", "as in the file") for name in columns}
    return Reading(pd.DataFrame(columns), meanings)


def cells_of(text: str, least: int = 2) -> Cells:
    """The columns of a delimited text. Raises Malformed, also if it has fewer than `least` rows."""
    if len(text) > LARGEST:
        raise Malformed(0, f"more than {LARGEST:,} characters, expected rows of a fit only")
    lines, delimiter = _parted(*_lines(text.splitlines()))
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            if any(cells := [cell.strip() for cell in row]):
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise Malformed(reader.line_num, f"{error}, expected a CSV file") from None
    return named(rows, delimiter, least)


def _lines(lines: list[str]) -> tuple[list[str], str]:
    """The lines of a table, empty where they are left out, and the one with the header."""
    left = ["" if _is_left_out(line) else line for line in lines]
    first, header = next(((i, line) for i, line in enumerate(left) if line.strip()), (0, ""))
    above = next((i for i in reversed(range(first)) if lines[i].startswith("#")), None)
    if above is not None and _is_header(lines[above], header):
        left[above] = header = lines[above].lstrip("# ")
    return left, header


def _delimiter(header: str) -> str:
    """What parts the cells of a header; "" for blanks."""
    plain = re.sub('"[^"]*"?', "", header)
    known = "|" if plain.lstrip().startswith("|") else max(",;\t|", key=plain.count)
    return known if known in plain else ""


def _parted(lines: list[str], header: str) -> tuple[list[str], str]:
    """The lines with one character between cells, and that character. In lines without commas and
    the like, cells stand two blanks or more apart if all lines then have equally many, else one.
    """
    delimiter = _delimiter(header)
    if delimiter == "|":
        return [re.sub(r"^\s*\||\|\s*$", "", line) for line in lines], delimiter
    if delimiter or " " not in header.strip():
        return lines, delimiter or ","
    wide = {len(re.findall(r"\s{2,}", line.strip())) for line in lines if line.strip()}
    gap = r"\s{2,}" if len(wide) == 1 and wide != {0} else r"\s+"
    return [re.sub(gap, "\t", line.strip()) for line in lines], "\t"


def _is_header(comment: str, row: str) -> bool:
    """Whether a comment has the names of the columns, and the row below has figures."""
    if not (delimiter := _delimiter(comment)):
        return False  # else each remark might be one
    names, cells = (line.strip("# ").split(delimiter) for line in (comment, row))
    figures = [is_number(cell.strip().replace(",", ".")) for cell in cells]
    named = not any(is_number(name.strip()) for name in names)
    return len(names) == len(cells) > 1 and named and any(figures)


def named(rows: list[tuple[int, list[str]]], delimiter: str = "", least: int = 1) -> Cells:
    """The columns of some rows. Each row comes with its line number; the first row has the names.
    Without a delimiter, a row may have fewer cells than others. Raises Malformed.
    """
    if not rows:
        raise Malformed(0, "empty, expected a header row and rows of figures")
    # Excel leaves empty columns.
    width = max(max(compress(count(1), row), default=0) for _, row in rows)
    fill = [] if delimiter else [""] * width
    header, *rows = [(line, (row + fill)[:width]) for line, row in rows]
    _check(header, rows, least)
    table = Cells({n: {line: row[i] for line, row in rows} for i, n in enumerate(header[1])})
    commas = filter(COMMA.fullmatch, chain.from_iterable(row for _, row in rows))
    if delimiter != "," and not all(map(THOUSANDS.fullmatch, commas)):
        table.decimal = ","
    return table


def _check(header: tuple[int, list[str]], rows: list[tuple[int, list[str]]], least: int) -> None:
    """Raise Malformed unless a header has names, each once, above enough rows of as many cells."""
    first, names = header
    if number := next(filter(is_number, names), ""):
        raise Malformed(first, f"{number} among the names, expected a header with names")
    name, often = Counter(names).most_common(1)[0]
    if often > 1:
        raise Malformed(first, f"column {name!r} appears twice, expected it once")
    if odd := next(((line, row) for line, row in rows if len(row) != len(names)), None):
        raise Malformed(odd[0], f"{len(odd[1])} cells, expected {len(names)}")
    if len(rows) < least:
        seen = ("a header only", "one row")[len(rows)]
        wanted = ("one row", "two rows")[least - 1]
        raise Malformed(0, f"{seen}, expected a header and at least {wanted}")


def numbers(cells: Cells, column: str, path: str | Path, positive: bool) -> np.ndarray:
    """One column of `read` as floats: finite, and positive if `positive`. Raises InputError."""
    points_part = _points_part(cells[column].values())
    for line, cell in cells[column].items():
        wrong = _wrong(cell, cells.decimal, points_part)
        if not wrong and positive and float(cell.replace(",", ".")) <= 0:
            wrong = f"{cell}, expected a positive number"
        if wrong:
            raise InputError(f"{path}:{line}: {column} is {wrong}")
    return np.array([float(cell.replace(",", ".")) for cell in cells[column].values()])


def _wrong(cell: str, decimal: str, points_part: bool) -> str:
    """A cell and what is expected instead, or "" for a number as it should be."""
    figure = cell.replace(decimal, ".")
    if points_part and "." in cell:
        return (
            f"{cell!r} and others are hundreds without a point, expected {cell.replace('.', '')} "
            f"if points part thousands, or else {cell}0"
        )
    if "," in cell and "." in cell:
        return f"{cell!r}, expected a number without thousands separators"
    if decimal == "," and "." in cell:
        return f"{cell!r}, expected a decimal comma, as others have"
    if not is_number(figure):
        return f"{cell!r}, expected a number{_without_commas(cell)}"
    value = float(figure)
    if not np.isfinite(value):
        return f"{cell!r}, expected a finite number"
    if value and not 1e-100 < abs(value) < 1e100:
        return f"{cell}, expected 1e-100 to 1e100"
    return ""


def _points_part(texts: Collection[str]) -> bool:
    """Whether points seem to part thousands, as in 950, 1.940 and 3.050: nothing else has a point,
    and the others are hundreds or less.
    """
    pointed, others = [t for t in texts if "." in t], [t for t in texts if "." not in t]
    small = all(len(text) <= 3 for text in others) and any(len(text) == 3 for text in others)
    return bool(pointed) and small and all(map(POINTED.fullmatch, pointed))


def _without_commas(cell: str) -> str:
    """What is expected instead of the commas of a number, after "expected a number"."""
    if THOUSANDS.fullmatch(cell):
        return " without thousands separators, such as 1940 or 1.94"
    return " with a decimal point" if COMMA.fullmatch(cell) else ""


def is_number(cell: str) -> bool:
    """What Python reads as a float, in the digits of a CSV file."""
    number = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(nan|inf|infinity)"
    return re.fullmatch(number, cell, re.IGNORECASE | re.ASCII) is not None
