"""Tables of one's own: CSV, TSV and workbooks, and files that are none."""

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nummodel.errors import InputError
from nummodel.records import columns, readers

openpyxl = pytest.importorskip("openpyxl")
RECORDINGS = Path(__file__).parent / "recordings"
ROWS = [["threads", "tps", "note"], [1, 10.5, "first"], [2, 19.25, "=1+1"], [4, 34.0, "last"]]


@pytest.fixture
def workbook(tmp_path):
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append(row)
    path = tmp_path / "load test.xlsx"
    book.save(path)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimited_text(delimiter, tmp_path):
    path = tmp_path / "points.txt"
    path.write_text("\n".join(delimiter.join(map(str, row)) for row in ROWS))
    name, reading = readers.read(path)
    assert name == "table"
    assert reading.table["tps"].tolist() == [10.5, 19.25, 34.0]
    assert reading.table["note"].tolist() == ["first", "=1+1", "last"]


def test_a_workbook_is_the_table_of_its_first_sheet(workbook):
    name, reading = readers.read(workbook)
    assert name == "excel"
    assert reading.table["threads"].tolist() == [1, 2, 4]
    assert reading.table["tps"].tolist() == [10.5, 19.25, 34.0]


def test_a_workbook_may_have_any_name(workbook):
    assert len(readers.read(workbook.rename(workbook.with_name("points")))[1].table) == 3


def test_a_workbook_with_wrong_dimensions_is_read_whole(workbook, tmp_path):
    path = tmp_path / "wrong.xlsx"
    with zipfile.ZipFile(workbook) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, re.sub(rb'dimension ref="[^"]*"', b'dimension ref="A1:A2"', part))
    assert readers.read(path)[1].table.equals(readers.read(workbook)[1].table)


def test_odd_workbooks(tmp_path):
    path, book = tmp_path / "odd.xlsx", openpyxl.Workbook()
    book.active.append(["hidden"])
    book.active.sheet_state = "hidden"
    sheet = book.create_sheet("points")
    for row in [["N", "X (a; b; c)"], [1, 10], ["#N/A", 19], [], [4, 30, None], [8, 40]]:
        sheet.append(row)
    book.save(path)
    reading = readers.read(path)[1]
    assert [*reading.table["N"]] == ["1", "#N/A", "4", "8"]
    assert [*reading.table["X (a; b; c)"]] == [10, 19, 30, 40]
    assert reading.left_out == ("Sheet 'points' is read. Sheets left out: Sheet.",)
    sheet.cell(300, 16384).number_format = "0.00"
    book.save(path)
    assert len(readers.read(path)[1].table) == 4
    for i in range(40):
        sheet.cell(300 + i, 16384).number_format = "0.00"
    book.save(path)
    with pytest.raises(InputError, match="more than 500,000 cells"):
        readers.read(path)


def test_a_workbook_can_be_fitted(workbook):
    points = columns.read(workbook)
    assert points.N.tolist() == [1, 2, 4]
    assert points.X.tolist() == [10.5, 19.25, 34.0]


def test_a_workbook_that_unpacks_to_gigabytes_is_refused(tmp_path):
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(100 * 2**20))
    assert path.stat().st_size < 2**20
    with pytest.raises(InputError, match="when it is unpacked"):
        readers.read(path)


@pytest.mark.parametrize("raw", [b"PK\x03\x04", b"PK\x03\x04" + bytes(1000)])
def test_what_is_no_workbook_is_refused(raw, tmp_path):
    path = tmp_path / "odd.xlsx"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="no workbook"):
        readers.read(path)


def test_a_damaged_workbook_is_a_table_or_one_error(workbook, tmp_path):
    raw, random = workbook.read_bytes(), np.random.default_rng(4)
    path = tmp_path / "damaged.xlsx"
    for _ in range(150):
        data = bytearray(raw)
        for place in random.integers(4, len(data), 1 + random.integers(20)):
            data[place] = random.integers(256)
        path.write_bytes(data)
        try:
            assert len(readers.read(path)[1].table)
        except InputError as error:
            assert "damaged.xlsx" in str(error)


def test_an_error_about_a_workbook_is_one_line(workbook, tmp_path):
    with zipfile.ZipFile(workbook) as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, b"<oops" if name == "xl/styles.xml" else old.read(name))
    with pytest.raises(InputError, match="no workbook") as caught:
        readers.read(tmp_path / "b.xlsx")
    assert "\n" not in str(caught.value)


def test_a_gigabyte_is_refused_by_its_size(tmp_path):
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(InputError, match="more than 64 MiB"):
        readers.read(path)


def test_a_reader_may_be_named(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("threads,tps\n1,2\n2,3\n")
    assert readers.read(path, "table")[0] == "table"
    with pytest.raises(InputError, match="no reader 'wrong', expected one of: ab"):
        readers.read(path, "wrong")
    with pytest.raises(InputError, match="expected a workbook"):
        readers.read(path, "excel")
    with pytest.raises(InputError, match="sysbench"):
        readers.read(path, "sysbench")


TABLE = (
    "threads | tps\n--------+------\n1 | 10.4\n2 | 19.1\n4 | 34.2\n8 | 52.9\n16 | 65\n32 | 58.7\n"
)
PSQL = f" {TABLE}(6 rows)\n\nTime: 0.512 ms\n"
RUNS = "".join(
    f"Requests per second:    {10 * N / (1 + N):.2f} [#/sec] (mean)\nConcurrency Level:      {N}\n"
    for N in (1, 2, 4, 8, 16)
)
AB = RUNS.replace("Requests", "This is ApacheBench, Version 2.3\nRequests")


@pytest.mark.parametrize(
    "raw",
    [
        PSQL.encode(),
        PSQL.replace("(6 rows)", "6 rows in set (0.00 sec)").encode(),
        TABLE.replace(" | ", ",").encode("utf-16"),
        TABLE.replace(" | ", "\t").replace("threads", "\x1b[1mthreads\x1b[0m").encode(),
        f"Our results:\n\n```\n{TABLE}```\n\nWhat limits it?\n".encode(),
        f"$ cat results.csv\n{TABLE.replace(' | ', ',')}$ \n".encode(),
    ],
)
def test_a_fit_reads_tables_as_people_keep_them(raw, tmp_path):
    """With what a database, an editor, a terminal or a shell adds."""
    (tmp_path / "kept.txt").write_bytes(raw)
    points = columns.read(tmp_path / "kept.txt")
    assert points.N.tolist() == [1, 2, 4, 8, 16, 32]
    assert points.X.tolist() == [10.4, 19.1, 34.2, 52.9, 65, 58.7]


@pytest.mark.parametrize("mark", ["2024-03-01 10:00:00 ", "> ", "{:5}  "])
def test_a_fit_reads_outputs_as_people_keep_them(mark, tmp_path):
    """With dates, marks of a quotation, or numbers before their lines."""
    lines = [mark.format(i) + line for i, line in enumerate(AB.splitlines(), 1)]
    (tmp_path / "kept.txt").write_text("\n".join(lines))
    assert columns.read(tmp_path / "kept.txt").N.tolist() == [1, 2, 4, 8, 16]


def test_a_note_above_a_document_is_left_out():
    text = (RECORDINGS / "fio-3.33.json").read_text()
    note = "note: both iodepth >= 1 and synchronous I/O engine are selected\n"
    reading, other = (readers.parsed(t, "file")[1] for t in (text, note + text))
    assert reading.table.equals(other.table)
