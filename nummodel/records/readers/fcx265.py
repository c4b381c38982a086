"""z/VM Performance Toolkit FCX265, LOCKLOG: spin locks of the hypervisor by time.

Admitted with the layouts of two releases: of z/VM 5.3, as its performance report quotes the screen
("Spin Lock Activity"), and of z/VM 7.3, as its documentation shows it ("Spin Lock Collision
Activity"). Other layouts are refused.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._output import table_of, take
from nummodel.records.readers._reading import Column, Malformed, Reading

TIME = re.compile(r">>Mean>>|[0-9]{1,2}:[0-9]{2}:[0-9]{2}", re.ASCII)
#: Each kind of figure: its power of ten, unit and meaning. The last is there since release 6.
FIGURES = {
    "rate": (0, "1/s", "acquisitions that had to spin"),
    "spin": (-6, "s", "mean spinning time of those that had to spin"),
    "share": (-2, "-", "share of processor time spent spinning"),
    "cads": (0, "1/s", "compare-and-delay instructions while spinning"),
}
KINDS = {
    "total": "exclusive and shared",
    "exclusive": "exclusive only",
    "shared": "shared only",
}
COLUMNS = {
    "part": Column("-", "which of several outputs in the file, from 1 on"),
    "end": Column("-", "end of the interval, time of day; >>Mean>> over all intervals"),
    "lock": Column("-", "name of the spin lock"),
} | {
    f"{kind}_{name}": Column(unit, f"{meaning}, {words}")
    for kind, words in KINDS.items()
    for name, (_, unit, meaning) in FIGURES.items()
}
#: Lines that frame the screen and its columns.
HEADING = re.compile(r"1?\s{0,8}FCX265 |.*(<-----|Spin Lock Log)|\s*_+\s*$|\s*Interval  +\S")


def recognises(text: str) -> bool:
    """Whether the text has the head of the screen, or its columns."""
    return "FCX265 " in text or "<------- Spin Lock" in text


def parse(text: str) -> Reading:
    """A row for each printed row. Raises Malformed for other layouts."""
    rows: list[dict[str, Any]] = []
    names: list[str] = []
    known: set[tuple[str, str]] = set()
    part, width = 1, 0

    def head(line: str, cells: list[str], at: int) -> bool:
        nonlocal names, width
        if "Spin Lock" in line[:500] and "Activity" in line[:500]:
            names = [*FIGURES][: 4 if "Collision" in line[:500] else 3]
        elif cells[:2] == ["End", "Time"]:
            width = len(line.rstrip())
            if not names:
                raise Malformed(at, "no title above, expected 'Spin Lock Activity'")
        return cells[:2] == ["End", "Time"] or HEADING.match(line[:500]) is not None

    def row(line: str, cells: list[str], at: int) -> bool:
        nonlocal part
        if not TIME.fullmatch(cells[0]) or not width:
            return False
        found = _row(cells, names, at)
        if (cells[0], cells[1]) in known:
            part += 1
            known.clear()
        known.add((cells[0], cells[1]))
        rows.append({"part": part, **found})
        return True

    outside = take(text, head, row, lambda line: len(line.rstrip()) >= width)
    told = ["The heading of the screen is left out.", *outside]
    return table_of(rows, COLUMNS, told, "no row of a lock, expected the screen FCX265")


def _row(cells: list[str], names: list[str], at: int) -> dict[str, Any]:
    """The figures of a lock: in total, exclusive and shared. Raises Malformed."""
    if len(cells) != 2 + len(KINDS) * len(names):
        expected = f"an interval, a lock and {len(KINDS) * len(names)} figures"
        raise Malformed(at, f"{len(cells)} cells, expected {expected}")
    row: dict[str, Any] = {"end": cells[0], "lock": cells[1]}
    figures = iter(cells[2:])
    for kind in KINDS:
        for name in names:
            cell = next(figures)
            # The toolkit prints no 0 before the point.
            plain = f"0{cell}" if cell.startswith(".") else cell
            row[f"{kind}_{name}"] = scaled(plain, FIGURES[name][0], at, f"{kind} {name}")
    return row
