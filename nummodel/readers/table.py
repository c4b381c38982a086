"""Delimited text with a header row: commas, semicolons or tabs; lines with # are comments."""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nummodel.errors import InputError

#: The cells of each column as text, by line number.
Cells = Mapping[str, Mapping[int, str]]


def read(path: str | Path) -> Cells:
    """The columns of a delimited file. Raises InputError."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}, expected a readable file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not text, expected a CSV file in UTF-8") from None
    if "\0" in text:
        raise InputError(f"{path}: not text, expected a CSV file in UTF-8")
    lines = ["" if line.startswith("#") else line for line in text.splitlines()]
    header = next((line for line in lines if line.strip()), "")
    delimiter = max(",;\t", key=header.count)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            if any(row):
                rows.append((reader.line_num, [cell.strip() for cell in row]))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: {error}, expected a CSV file") from None
    if not rows:
        raise InputError(f"{path}: empty, expected a header row and rows of figures")
    (first, names), *rows = rows
    if all(map(_is_number, names)):
        raise InputError(f"{path}:{first}: a row of numbers, expected a header with names")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path}:{first}: column {name!r} appears twice, expected it once")
    for line, row in rows:
        if len(row) != len(names):
            raise InputError(f"{path}:{line}: {len(row)} cells, expected {len(names)}")
    if len(rows) < 2:
        found = "one row" if rows else "a header only"
        raise InputError(f"{path}: {found}, expected a header and at least two rows")
    return {name: {line: row[i] for line, row in rows} for i, name in enumerate(names)}


def numbers(cells: Cells, column: str, path: str | Path, positive: bool) -> np.ndarray:
    """One column of `read` as floats: finite and, if asked, positive. Raises InputError."""
    if column not in cells:
        raise InputError(f"{path}: no column {column!r}, expected one of: {', '.join(cells)}")
    values = []
    for line, cell in cells[column].items():
        if not _is_number(cell):
            raise InputError(
                f"{path}:{line}: {column} is {cell!r}, expected a number{_without_commas(cell)}"
            )
        value = float(cell)
        if not np.isfinite(value):
            raise InputError(f"{path}:{line}: {column} is {cell!r}, expected a finite number")
        if value and not 1e-100 < abs(value) < 1e100:
            raise InputError(f"{path}:{line}: {column} is {cell}, expected 1e-100 to 1e100")
        if positive and value <= 0:
            raise InputError(f"{path}:{line}: {column} is {cell}, expected a positive number")
        values.append(value)
    return np.array(values)


def _without_commas(cell: str) -> str:
    """What is expected instead of the commas of a number, after "expected a number"."""
    if re.fullmatch(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", cell):
        return " without thousands separators, such as 1940 or 1.94"
    return " with a decimal point" if re.fullmatch(r"[-+]?[0-9]*,[0-9]+", cell) else ""


def _is_number(cell: str) -> bool:
    """What Python reads as a float, in the digits of a CSV file."""
    number = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(nan|inf|infinity)"
    return re.fullmatch(number, cell, re.IGNORECASE) is not None
