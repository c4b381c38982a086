"""The cells of a file: of a table, of what a tool prints, or of a folder with such outputs."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nummodel.errors import InputError
from nummodel.nomenclature import show
from nummodel.records import folder, readers
from nummodel.records._names import Meaning, meaning
from nummodel.records.readers import table
from nummodel.records.readers.table import Cells

if TYPE_CHECKING:
    import pandas as pd

#: Columns of what tools print that a fit takes, beside utilisations of devices.
TAKEN = ("N", "X", "R", "U_cpu", "c_cpu", "series")
#: Devices that pass their requests on to others, and so are busy when these are.
VOLUME = re.compile(r"U_(dm-|md|loop|drbd|bcache)\d")
#: What a reader says that a fit says as well.
TOLD = re.compile(": left out: |more failed than succeeded|so N is no load")
#: A device that is never in use for this share of the time is left out.
IDLE = 0.01


def cells_of(path: Path) -> tuple[Cells, list[str], bool]:
    """The cells of a table, by line or by the name of the run; of what tools print, those that a
    fit can use. Then what of a folder is left out, and whether times are in seconds.
    """
    if path.is_dir():
        reader, reading = "folder", folder.read(path)
    elif not _is_output(path):
        return table.read(path), [], False
    else:
        reader, reading = readers.read(path)
    found, notes = reading.table, [s for s in reading.left_out if TOLD.search(s)]
    lines: Iterable[int | str] = range(1, len(found) + 1)
    if reader != "excel":
        if "N" not in found:
            how = (
                "nummodel read FOLDER --pattern '{N}.txt' makes a table of runs whose names tell it"
            )
            what = "no N, the number of users at the same time" if "X" in found else "no N and X"
            raise InputError(f"{path}: the output of {reader}, which has {what}; {how}")
        if reader == "folder" and "run" in found and found["run"].is_unique:
            lines = found["run"]
        devices, left_out = _devices(found)
        found, notes = found[[n for n in found if n in (*TAKEN, *devices)]], [*notes, *left_out]
    cells = Cells({n: dict(zip(lines, map(str, found[n]), strict=True)) for n in found})
    return cells, notes, "R" in reading.columns and reading.columns["R"].unit == "s"


def _devices(found: "pd.DataFrame") -> tuple[list[str], list[str]]:
    """The devices of a table that were in use, and which others are left out."""
    devices = [n for n in found if re.match("U_(?!cpu$)", n) and not n.endswith("_se")]
    disks = [n for n in devices if not VOLUME.match(n)] or devices
    used, notes = [n for n in disks if found[n].max() >= IDLE], []
    idle, volumes = ", ".join(sorted({*disks} - {*used})), ", ".join(sorted({*devices} - {*disks}))
    if idle:
        notes.append(f"left out: {idle}, below {show(IDLE, '%')} at all loads")
    if volumes:
        notes.append(f"left out: {volumes}, which pass requests on to other devices")
    return used, notes


def _is_output(path: Path) -> bool:
    """Whether a file is a workbook, or the output of a tool."""
    if str(path) == "-" or not path.is_file():
        return False
    try:
        return readers.is_workbook(path) or readers.recognised(readers.text_of(path)) not in (
            [],
            ["table"],
        )
    except InputError:
        return False


def picked(cells: Cells, only: list[tuple[str, str]], path: str | Path) -> Cells:
    """The rows in which columns have these values. Raises InputError if there are none."""
    for name, value in only:
        if name not in cells:
            raise InputError(f"{path}: no column {name!r}, expected one of: {named(cells)}")
        lines = [line for line, cell in cells[name].items() if cell.strip() == value]
        if not lines:
            there = named(dict.fromkeys(cells[name].values()))
            raise InputError(f"--only {name}={value}: no row, expected one of: {there}")
        cells = cells.of({n: {line: column[line] for line in lines} for n, column in cells.items()})
    return cells


def computed(cells: Cells, name: str, path: str | Path) -> Meaning:
    """What a ratio of columns holds, or 1/NAME, or 1-NAME. Its cells join the others."""
    for sign in re.finditer("[-/]", name):
        first, second = name[: sign.start()].strip(), name[sign.end() :].strip()
        less = sign[0] == "-"
        if second not in cells or (first != "1" and (less or first not in cells)):
            continue
        of = meaning(second)
        values = table.numbers(cells, second, path, positive=not less) * of.size
        work = 1.0 if first == "1" else table.numbers(cells, first, path, positive=True)
        values = 1 - values if less else work / values
        texts = (repr(float(value)).replace(".", cells.decimal) for value in values)
        cells[name] = dict(zip(cells[second], texts, strict=True))
        return Meaning("", 1.0, "rate" * (not less and of.kind == "time"))
    raise InputError(f"{path}: no column {name!r}, expected one of: {named(cells)}")


def named(names: Iterable[str], most: int = 8) -> str:
    """The first names, and whether there are more."""
    names = [*names]
    return ", ".join([*names[:most], *["..."] * (len(names) > most)])
