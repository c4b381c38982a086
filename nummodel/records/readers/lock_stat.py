"""/proc/lock_stat of Linux, versions 0.2 to 0.4, or rows of it without the header.

Version 0.4 has the mean waiting and holding times; none are derived for older versions. Admitted
with published outputs of 0.3 and 0.4; none of 0.2 was at hand.
"""

import re
from collections import Counter
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._output import table_of, take
from nummodel.records.readers._reading import Column, Malformed, Reading

COUNTS = "con-bounces", "contentions", "acq-bounces", "acquisitions"
COLUMNS = {
    "part": Column("-", "which of several outputs in the file, from 1 on"),
    "lock": Column("-", "class of locks"),
    "mode": Column("-", "R for readers, W for writers, else empty"),
    "con_bounces": Column("-", "contentions that involved data of another processor"),
    "contentions": Column("-", "acquisitions that had to wait"),
    "waittime_min": Column("s", "shortest waiting time that is not 0"),
    "waittime_max": Column("s", "longest waiting time"),
    "waittime_total": Column("s", "sum of the waiting times"),
    "waittime_avg": Column("s", "mean waiting time of those that had to wait"),
    "acq_bounces": Column("-", "acquisitions that involved data of another processor"),
    "acquisitions": Column("-", "times that the lock was taken"),
    "holdtime_min": Column("s", "shortest holding time that is not 0"),
    "holdtime_max": Column("s", "longest holding time"),
    "holdtime_total": Column("s", "sum of the holding times"),
    "holdtime_avg": Column("s", "mean holding time"),
}
NAMES = [name.replace("_", "-") for name in list(COLUMNS)[3:]]
WITHOUT_MEANS = [name for name in NAMES if not name.endswith("avg")]
RULE = re.compile(r"\s*(-{3,}|\.{3,})\s*")
TOLD = {
    "point": "Contention points are left out",
    "warning": "Warnings of the kernel are left out",
}


def recognises(text: str) -> bool:
    """Whether a text has the header, or one of the first lines has the figures of a lock."""
    if "lock_stat version 0." in text or re.search(r"^[ \t]*class name +con-bounces ", text, re.M):
        return True
    return any(_unnamed(line) for line in text[:100_000].split("\n")[:200])


def parse(text: str) -> Reading:
    """A row for each lock and mode. Raises Malformed for lines that are not of lock_stat."""
    rows: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    names: list[str] = []
    part, begun = 0, False

    def head(line: str, cells: list[str], at: int) -> bool:
        nonlocal names, begun
        kind = _kind(line, cells)
        counts[kind] += 1
        begun &= kind != "head"
        names = _names(cells[2:], at) if cells[:2] == ["class", "name"] else names
        return bool(kind)

    def row(line: str, cells: list[str], at: int) -> bool:
        nonlocal part, begun
        if found := _row(line, names or _unnamed(line), at):
            part, begun = part + (not begun), True
            rows.append({"part": part, **found})
        return bool(found)

    outside = take(text, head, row, lambda line: re.search(r"\.[0-9]{2}$", line[-9:]) is not None)
    told = [f"{what}: {counts[kind]}." for kind, what in TOLD.items() if counts[kind]]
    expected = "no lock, expected rows such as 'unix_table_lock: 110 112 0.21 ...'"
    return table_of(rows, COLUMNS, told + outside, expected)


def _kind(line: str, cells: list[str]) -> str:
    """What a line of lock_stat is that has no figures of a lock, else ""."""
    if cells[:2] in (["class", "name"], ["lock_stat", "version"]):
        return "head"
    if RULE.fullmatch(line):
        return "rule"
    if cells[0].startswith("*WARNING*"):
        return "warning"
    before = line.partition("[<")[0].split()
    return "point" if len(before) < len(cells) and before and before[-1].isdigit() else ""


def _names(names: list[str], at: int) -> list[str]:
    """The columns of a header. Raises Malformed for others than those known."""
    if not names or len(set(names)) < len(names) or not set(names) <= set(NAMES):
        raise Malformed(at, f"columns {' '.join(names)[:80]!r}, expected {' '.join(NAMES)}")
    return names


def _unnamed(line: str) -> list[str]:
    """The columns of a row without a header above, as far as its figures tell."""
    for names in (NAMES, WITHOUT_MEANS):
        name, *cells = line.rsplit(None, len(names)) or [""]
        kinds = [r"[0-9]{1,18}" if n in COUNTS else r"[0-9]{1,18}\.[0-9]{2}" for n in names]
        if name.endswith(":") and len(cells) == len(names):
            pairs = zip(kinds, cells, strict=True)
            if all(re.fullmatch(kind, cell, re.ASCII) for kind, cell in pairs):
                return names
    return []


def _row(line: str, names: list[str], at: int) -> dict[str, Any]:
    """The figures of a lock; none for a line that is no row. Raises Malformed."""
    name, *cells = line.rsplit(None, len(names)) if names else [""]
    if not name.endswith(":") or len(cells) != len(names):
        return {}
    # Names are aligned to the right; they may have colons and blanks in them.
    lock, mode = name[:-1].lstrip(), ""
    if lock.endswith(("-R", "-W")):
        lock, mode = lock[:-2], lock[-1]
    row: dict[str, Any] = {"lock": lock, "mode": mode}
    for column, cell in zip(names, cells, strict=True):
        row[column.replace("-", "_")] = _figure(column, cell, at)
    return row


def _figure(column: str, cell: str, at: int) -> float:
    """A whole number, or microseconds in seconds. Raises Malformed."""
    if column not in COUNTS:
        return scaled(cell, -6, at, column)
    if re.fullmatch("[0-9]{1,18}", cell, re.ASCII):
        return int(cell)
    raise Malformed(at, f"{column} is {cell[:40]!r}, expected a whole number")
