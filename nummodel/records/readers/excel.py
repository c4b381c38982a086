"""Excel workbooks (.xlsx): the table of the first sheet that is not hidden."""

import warnings
from datetime import date
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from nummodel.errors import InputError
from nummodel.records.readers import table
from nummodel.records.readers._reading import Malformed, Reading

#: Bytes of a workbook when it is unpacked, at most: some 40,000 rows of two figures, read in two
#: seconds; and cells, with empty ones before the last of a row.
LARGEST, MOST = 4 * 2**20, 500_000


def recognises(text: str) -> bool:
    """No text is a workbook: see `is_workbook`."""
    return False


def parse(text: str) -> Reading:
    """Raises Malformed: a text is no workbook."""
    raise Malformed(0, "a text, expected a workbook")


def read(path: str | Path) -> Reading:
    """The values of the sheet; formulas count by the values that were stored with them.

    Raises InputError for no workbook, and for one that would be too large when it is unpacked.
    """
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        how = "pip install 'nummodel[excel]', or save the sheet as CSV"
        raise InputError(f"{path}: a workbook, which needs openpyxl: {how}") from None
    try:
        rows, name, others = _rows(path)
        reading = table.reading(table.named(rows))
    except Malformed as error:
        row = f", row {error.line}" if error.line else ""
        raise InputError(f"{path}: sheet {name!r}{row}: {error.wrong}") from None
    told = [f"Sheet {name!r} is read. Sheets left out: {', '.join(others)}."] * bool(others)
    empty = [n for n in reading.table if (reading.table[n] == "").all()]
    told += [f"Columns without values: {', '.join(map(repr, empty))}."] * bool(empty)
    return Reading(reading.table, reading.columns, tuple(told))


def _rows(path: str | Path) -> tuple[list[tuple[int, list[str]]], str, list[str]]:
    """The rows with their numbers, as text; the name of the sheet, and those of others."""
    from openpyxl import load_workbook

    try:
        with ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > LARGEST:
            limit = f"expected at most {LARGEST // 2**20} MiB, or the sheet as CSV"
            raise Malformed(0, f"{size:,} bytes when it is unpacked, {limit}")
        # Of a path, openpyxl would ask for its extension. It warns of styles, which are not read.
        with open(path, "rb") as file, warnings.catch_warnings(action="ignore"):
            return _first(load_workbook(file, read_only=True, data_only=True).worksheets)
    except Malformed as error:
        raise error.at(path) from None
    except Exception as error:  # what openpyxl raises of a damaged file is not documented
        what = str(error).split("\n")[0][:200] or type(error).__name__
        raise InputError(f"{path}: no workbook ({what}), expected .xlsx or CSV") from None


def _first(sheets: list[Any]) -> tuple[list[tuple[int, list[str]]], str, list[str]]:
    """As `_rows`, of the first sheet that is not hidden. Raises Malformed."""
    sheet = next((sheet for sheet in sheets if sheet.sheet_state == "visible"), sheets[0])
    sheet.reset_dimensions()  # some programs store wrong ones
    rows, cells = [], 0
    for i, values in enumerate(sheet.iter_rows(values_only=True), 1):
        cells += len(values)
        if cells > MOST:
            raise Malformed(0, f"more than {MOST:,} cells, expected rows of a fit")
        texts = [*map(_text, values)]
        rows += [(i, texts)] * any(texts)
    return rows, sheet.title, [other.title for other in sheets if other != sheet]


def _text(value: Any) -> str:
    """A cell as CSV has it."""
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, date) else " ".join(str(value).split())
