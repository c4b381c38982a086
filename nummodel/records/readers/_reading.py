"""What a reader gives, and how the bytes of a file become the text that readers take."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nummodel.errors import InputError, cell

if TYPE_CHECKING:
    import pandas as pd

#: Bytes of a file, at most. An hour of samples of fifty disks, one a second, has 40 million.
LARGEST = 64 * 2**20
#: Colours and other instructions to a terminal.
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")


class Column(NamedTuple):
    """The unit of a column, "-" for none, and what its values mean."""

    unit: str
    meaning: str


#: Columns that several readers have.
COMMON = {
    "t": Column("s", "end of the interval, since the start"),
    "N": Column("-", "clients, threads or connections at the same time"),
    "X": Column("1/s", "throughput"),
    "R": Column("s", "mean response time"),
    "c_cpu": Column("-", "processors of the machine, as its system counts them"),
    "U_cpu": Column("-", "share of all processors in use"),
    "user": Column("-", "share of processor time in user mode, nice included"),
    "system": Column("-", "share of processor time in the system, interrupts included"),
    "iowait": Column("-", "share of processor time idle while a disk works"),
    "idle": Column("-", "share of processor time idle, iowait not included"),
    "steal": Column("-", "share of processor time that a hypervisor gave to others"),
}


def column(name: str) -> Column:
    """A common column by its name, or a percentile of the response time, such as R_p95."""
    if percentile := re.fullmatch(r"R_p([0-9.]+)", name):
        return Column("s", f"response time that {percentile[1]} % of the requests keep below")
    return COMMON[name]


@dataclass(frozen=True)
class Reading:
    """The `table` that a file has, the meanings of all its `columns`, and sentences about what was
    `left_out` or does not agree. `samples` has a row for each interval of a run, `t` seconds after
    its start, if the output has any; the columns of samples are among the `columns`.
    """

    table: "pd.DataFrame"
    columns: Mapping[str, Column]
    left_out: tuple[str, ...] = ()
    samples: "pd.DataFrame | None" = field(default=None)

    def document(self) -> dict[str, Any]:
        """The table as one JSON document: null for what is not known."""
        rows = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        finite = [{n: None if v in (inf, -inf) else v for n, v in row.items()} for row in rows]
        columns = {n: c._asdict() for n, c in self.columns.items() if n in self.table}
        return {"columns": columns, "rows": finite, "left_out": list(self.left_out)}

    def csv(self) -> str:
        """The table as CSV. A text that a spreadsheet would take for a formula gets a quote."""
        text = self.table.select_dtypes(exclude="number")
        text = text.map(lambda value: cell(value) if isinstance(value, str) else value)
        names = [cell(n) for n in self.table]
        return self.table.assign(**text).set_axis(names, axis=1).to_csv(index=False)


class Malformed(ValueError):
    """A text is not what its reader knows: the `line`, from 1 on or 0, and what is wrong there."""

    def __init__(self, line: int, wrong: str):
        super().__init__(line, wrong)
        self.line, self.wrong = line, wrong

    def at(self, path: str | Path, reader: str = "") -> InputError:
        """The error that a person reads."""
        where = f"{path}:{self.line}" if self.line else str(path)
        return InputError(f"{where}: {self.wrong}" + f" ({reader})" * bool(reader))


def is_workbook(path: str | Path) -> bool:
    """Whether a file begins as a zip archive does."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def text_of(path: str | Path) -> str:
    """The text of a file, or of standard input for "-", with plain line ends and without colours.

    Raises InputError for what is no text, or too large.
    """
    import sys

    try:
        with open(path, "rb") if str(path) != "-" else sys.stdin.buffer as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}, expected a readable file") from None
    if len(raw) > LARGEST:
        size = f"more than {LARGEST // 2**20} MiB"
        raise InputError(f"{path}: {size}, expected a table or the output of a tool")
    return plain(raw, str(path))


def plain(raw: bytes, path: str) -> str:
    """The text of some bytes. Raises InputError if they are no text."""
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        where = f"{path}:{raw[: error.start].count(bytes([10])) + 1}"
        raise InputError(
            f"{where}: no text in UTF-8, expected a table or the output of a tool"
        ) from None
    if "\0" in text:
        raise InputError(
            f"{path}: bytes that are no text, expected a table or the output of a tool"
        )
    text = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise InputError(f"{path}: empty, expected a table or the output of a tool")
    return text


def number(cell: str, line: int, what: str) -> float:
    """A finite number that is not negative, as tools print it. Raises Malformed."""
    if re.fullmatch(r"[0-9]{1,20}([.,][0-9]{1,20})?([eE][-+]?[0-9]{1,2})?", cell, re.ASCII):
        return float(cell.replace(",", "."))
    raise Malformed(line, f"{what} is {cell[:40]!r}, expected a number")
