"""Excel workbooks (.xlsx): the table of the first sheet."""

import csv
import io
import warnings
from pathlib import Path
from zipfile import ZipFile

from nummodel.errors import InputError
from nummodel.records.readers import table
from nummodel.records.readers._reading import Malformed, Reading

#: Bytes of the XML in a workbook, at most: some 40,000 rows of two figures, read in two seconds.
LARGEST = 4 * 2**20


def recognises(text: str) -> bool:
    """No text is a workbook: see `is_workbook`."""
    return False


def parse(text: str) -> Reading:
    """Raises Malformed: a text is no workbook."""
    raise Malformed(0, "a text, expected a workbook")


def read(path: str | Path) -> Reading:
    """The values of the first sheet; formulas count by the values that were stored with them.

    Raises InputError for no workbook, and for one that would be too large when it is unpacked.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        how = "pip install 'nummodel[excel]', or save the sheet as CSV"
        raise InputError(f"{path}: a workbook, which needs openpyxl: {how}") from None
    try:
        with ZipFile(path) as archive:
            files = archive.infolist()
            size = sum(file.file_size for file in files if file.filename.endswith(".xml"))
        if size > LARGEST:
            limit = f"expected at most {LARGEST // 2**20} MiB"
            raise InputError(f"{path}: {size:,} bytes when it is unpacked, {limit}")
        # Of a path, openpyxl would ask for its extension. It warns of styles, which are not read.
        with open(path, "rb") as file, warnings.catch_warnings(action="ignore"):
            book = load_workbook(file, read_only=True, data_only=True)
            rows = [*book.worksheets[0].iter_rows(values_only=True)]
    except InputError:
        raise
    except Exception as error:  # what openpyxl raises of a damaged file is not documented
        what = str(error).split("\n")[0][:200] or type(error).__name__
        raise InputError(f"{path}: no workbook ({what}), expected .xlsx or CSV") from None
    text = io.StringIO()
    csv.writer(text).writerows([["" if v is None else v for v in row] for row in rows])
    try:
        return table.parse(text.getvalue())
    except Malformed as error:
        row = f", row {error.line}" if error.line else ""
        raise InputError(f"{path}: first sheet{row}: {error.wrong}") from None
