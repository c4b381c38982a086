"""The cells of a file: of a table, of what a tool prints, or of a folder with such outputs."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nummodel.errors import InputError
from nummodel.nomenclature import show
from nummodel.records import folder, readers
from nummodel.records._names import meaning, unit_of
from nummodel.records.readers import Column, table
from nummodel.records.readers.table import Cells

if TYPE_CHECKING:
    import pandas as pd

#: Columns of what tools print that a fit takes, beside utilisations of devices.
TAKEN = ("N", "X", "R", "U_cpu", "c_cpu", "series")
#: Devices that pass their requests on to others, and so are busy when these are.
VOLUME = re.compile(r"U_(dm-|md|loop|drbd|bcache)\d")
#: What a reader says that a fit says as well.
TOLD = re.compile(": left out: |more failed than succeeded|so N is no load")
#: A cell with a unit.
WITH_UNIT = re.compile(r"([-+]?[0-9][0-9.,]*) ?(%|[nuµμm]?s)")
#: A device that is never in use for this share of the time is left out.
IDLE = 0.01


class Table(NamedTuple):
    """The cells of a file, by line or by the name of the run; what of the file is left out; and
    whether times are in seconds, as a tool printed them.
    """

    cells: Cells
    left_out: list[str]
    seconds: bool = False


def read(path: Path) -> Table:
    """The cells of a table; of what tools print, those that a fit can use."""
    if path.is_dir():
        tool, reading = "folder", folder.read(path)
    elif readers.is_workbook(path):
        tool, reading = readers.read(path)
    else:
        text = readers.text_of(path)
        special, output = readers.known(text)
        if len(special) != 1 or special == ["table"]:
            return Table(_named_units(table.read(output.text if special else text, path)), [])
        tool, reading = readers.parsed(text, path)
    found, left_out = reading.table, [s for s in reading.left_out if TOLD.search(s)]
    if tool != "excel":
        if "N" not in found:
            lack = "no N, the number of users at the same time" if "X" in found else "no N and X"
            how = "--pattern '{N}.txt' makes a table of runs whose names tell it"
            if "X" in found:
                how += f", and nummodel read {shlex.quote(str(path))} --n 8 of one run"
            has = f"the output of {tool}, which has {lack}"
            raise InputError(f"{path}: {has}; nummodel read FOLDER {how}")
        names, unused = _taken(found)
        found, left_out = found[names], [*left_out, *unused]
    lines: Iterable[int | str] = range(1, len(found) + 1)
    if tool == "folder" and "run" in reading.table and reading.table["run"].is_unique:
        lines = reading.table["run"]
    cells = Cells({n: dict(zip(lines, map(str, found[n]), strict=True)) for n in found})
    return Table(cells, left_out, reading.columns.get("R", Column("-", "")).unit == "s")


def _named_units(cells: Cells) -> Cells:
    """With the unit that all cells of a column have in the name of the column, as in 0.96ms."""
    columns = {}
    for name, column in cells.items():
        found = {line: WITH_UNIT.fullmatch(cell) for line, cell in column.items()}
        units = {one[2] for one in found.values() if one}
        own = unit_of(unit := units.pop()) if len(units) == 1 and all(found.values()) else None
        known = meaning(name)
        if own and (known.kind, known.size) in (own, ("", 1.0)):
            name = name if known.kind else f"{name} ({unit})"
            column = {line: one[1] for line, one in found.items() if one}
        columns[name] = column
    return cells.of(columns)


def _taken(found: "pd.DataFrame") -> tuple[list[str], list[str]]:
    """The columns that a fit takes, with devices that were in use; which others are left out."""
    devices = [n for n in found if re.fullmatch("U_(?!cpu$).*(?<!_se)", n)]
    disks = [n for n in devices if not VOLUME.match(n)] or devices
    used = [n for n in disks if found[n].max() >= IDLE]
    idle, volumes = sorted({*disks} - {*used}), sorted({*devices} - {*disks})
    why = {f"below {show(IDLE, '%')} at all loads": idle}
    why["which pass requests on to other devices"] = volumes
    unused = [f"left out: {', '.join(some)}, {reason}" for reason, some in why.items() if some]
    return [n for n in found if n in (*TAKEN, *used)], unused


def picked(cells: Cells, only: list[tuple[str, str]], path: str | Path) -> Cells:
    """The rows in which columns have these values. Raises InputError if there are none."""
    for name, value in only:
        if name not in cells:
            raise absent(cells, name, path)
        lines = [line for line, cell in cells[name].items() if cell.strip() == value]
        if not lines:
            there = listing(dict.fromkeys(cells[name].values()))
            raise InputError(f"--only {name}={value}: no row, expected one of: {there}")
        cells = cells.of({n: {line: column[line] for line in lines} for n, column in cells.items()})
    return cells


def absent(cells: Cells, name: str, path: str | Path) -> InputError:
    """The error that there is no column of this name."""
    return InputError(f"{path}: no column {name!r}, expected one of: {listing(cells)}")


def listing(names: Iterable[str], most: int = 8) -> str:
    """The first names, and whether there are more."""
    names = [*names]
    return ", ".join([*names[:most], *["..."] * (len(names) > most)])
