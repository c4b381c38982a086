"""perf lock contention: waits for locks by caller, lock, task, owner or cgroup, as text or CSV.

Recorded with perf 6.1; modes of 6.2 to 6.13 as in its source (tools/perf/builtin-lock.c) and in the
mails of its authors.
"""

import re
from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

from nummodel.records.readers._output import CUT, table_of, take
from nummodel.records.readers._reading import Column, Malformed, Reading

FIGURES = "contended|total wait|max wait|min wait|avg wait"
HEADER = re.compile(
    rf"\s*((?:(?:{FIGURES})\s+)+)(type\s+caller|pid\s+comm|pid\s+owner|address\s+symbol|cgroup)\s*"
)
CSV = re.compile(rf"# output: (?:{FIGURES})(\W{{1,8}}?) (?={FIGURES}|type|pid|address|cgroup)")
#: Lines that perf prints between and below rows.
OTHERS = {
    "stack": re.compile(r"\s*0x[0-9a-f]{1,20}(\s|$)"),
    "footer": re.compile(
        r"=== output for debug ?===|# debug: |bad: [0-9]|bad rate: |histogram of "
        r"|\s*(task|stack|time|data|acquire|acquired|contended|release): [0-9]{1,20}$"
    ),
}
#: The begin of a row of a text: no other line has it.
ROW = re.compile(r"\s*[0-9]{1,20}\s+[0-9.]{1,20} (ns|us|ms|s|m|h)\s")
LOCK_TYPE = re.compile(r"\(([^()\s]{1,40})\)$")
UNITS = {"ns": "1e-9", "us": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600"}
TOLD = {
    "stack": "Lines of call stacks are left out",
    "stacktrace": "Stack traces at the end of rows are left out",
    "footer": "Lines about records that perf failed to collect are left out",
}
COLUMNS = {
    "part": Column("-", "which of several outputs in the file, from 1 on"),
    "contended": Column("-", "lock acquisitions that had to wait"),
    "total_wait": Column("s", "sum of the waiting times"),
    "max_wait": Column("s", "longest waiting time"),
    "min_wait": Column("s", "shortest waiting time"),
    "avg_wait": Column("s", "mean waiting time of those that had to wait"),
    "type": Column("-", "kind of lock; :R for readers, :W for writers"),
    "caller": Column("-", "function that waited for the lock"),
    "pid": Column("-", "number of the task, -1 if unknown"),
    "comm": Column("-", "name of the task that waited"),
    "owner": Column("-", "name of the task that held the lock"),
    "address": Column("-", "address of the lock, hexadecimal"),
    "symbol": Column("-", "name of the lock, empty if unknown"),
    "cgroup": Column("-", "control group of the tasks that waited"),
}


class Head(NamedTuple):
    """The columns of a table: figures, then what the row is about, and what parts the cells."""

    figures: list[str]
    keys: list[str]
    separator: str

    def pattern(self) -> str:
        """A row of a text: three blanks part the columns, any more belong to the last name."""
        count, time, key = r"\s*(\S+)", r"\s*(\S+ \S+)", r"\s*(\S+)"
        cells = [time if name.endswith("wait") else count for name in self.figures]
        blanks = r"\s*" if self.keys[-1] == "cgroup" else r"(?: {3}|\s*)"
        return "".join([*cells, *[key] * (len(self.keys) - 1), blanks, "(.*)"])


def recognises(text: str) -> bool:
    """Whether a line is the header of a table of contention."""
    return any(_head(line) for line in text.split("\n") if " wait" in line or "contended" in line)


def parse(text: str) -> Reading:
    """A row for each printed row, of all tables in the text. Raises Malformed."""
    rows: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    now: Head | None = None
    last = ""

    def head(line: str, cells: list[str], at: int) -> bool:
        nonlocal now
        if found := _head(line):
            now = found
            counts["part"] += 1
            return True
        kind = _other(line, now)
        counts[kind] += 1
        return bool(kind)

    def row(line: str, cells: list[str], at: int) -> bool:
        nonlocal last
        if not now or not (now.separator or ROW.match(line)) or line.lstrip().startswith("#"):
            return False
        rows.append({"part": counts["part"], **_row(now, line, at, counts)})
        last = line
        return True

    outside = take(text, head, row, lambda line: True)
    if CUT not in outside and text.endswith(last):
        outside.append("The last line has no end, so its name may be cut off.")
    told = [f"{what}: {counts[kind]}." for kind, what in TOLD.items() if counts[kind]]
    expected = "no row below a header, expected locks with their waiting times"
    return table_of(rows, COLUMNS, told + outside, expected)


def _head(line: str) -> Head | None:
    """The header of a table, or None."""
    line = line.strip() if len(line) < 300 else ""
    if found := HEADER.fullmatch(line):
        return Head(re.findall(FIGURES, found[1]), found[2].split(), "")
    if not (found := CSV.match(line)):
        return None
    names = [name.strip() for name in line[len("# output: ") :].split(f"{found[1]} ")]
    figures = [name for name in names if re.fullmatch(FIGURES, name)]
    keys = names[len(figures) :]
    known = all(key in COLUMNS or key == "stacktrace" for key in keys)
    right = known and bool(keys) and names[: len(figures)] == figures
    return Head(figures, keys, f"{found[1]} ") if right else None


def _other(line: str, head: Head | None) -> str:
    """The kind of a line that perf prints between rows or below them, else ""."""
    kind = next((kind for kind, begin in OTHERS.items() if begin.match(line)), "")
    return "" if kind == "stack" and head and head.separator else kind


def _row(head: Head, line: str, at: int, counts: Counter[str]) -> dict[str, Any]:
    """The cells of a row. Raises Malformed."""
    cells = _csv_cells(head, line, at) if head.separator else _text_cells(head, line, at)
    counts["stacktrace"] += cells.pop("stacktrace", None) is not None
    row: dict[str, Any] = {n.replace(" ", "_"): _figure(n, cells[n], at) for n in head.figures}
    if "pid" in cells and not re.fullmatch("-?[0-9]{1,10}", cells["pid"], re.ASCII):
        raise Malformed(at, f"pid is {cells['pid'][:40]!r}, expected a whole number")
    for name, cell in cells.items():
        if name not in head.figures:
            row[name] = int(cell) if name == "pid" else cell
    return row


def _text_cells(head: Head, line: str, at: int) -> dict[str, str]:
    """The cells of a row in columns. Raises Malformed."""
    names = head.figures + head.keys
    found = re.match(head.pattern(), line)
    if not found or (names[-1] != "symbol" and not found[len(names)].strip()):
        raise Malformed(at, f"a row without all cells, expected {', '.join(names)}")
    cells = dict(zip(names, found.groups(), strict=True))
    # perf prints the type of a lock in brackets from 6.3 on.
    name = cells.get("symbol", "")
    if kind := LOCK_TYPE.search(name, max(0, len(name) - 42)):
        cells |= {"symbol": name[: kind.start()].strip(), "type": kind[1]}
    return cells


def _csv_cells(head: Head, line: str, at: int) -> dict[str, str]:
    """The cells of a row between separators, of which a name may have some, too."""
    names = head.figures + head.keys
    cells = line.lstrip().split(head.separator, len(names) - 1)
    if names[-1] == "stacktrace" and len(cells) == len(names) - 1:
        names = names[:-1]
    elif names[-2:] == ["symbol", "type"] and len(cells) == len(names):
        cells = line.lstrip().split(head.separator, len(names) - 2)
        cells[-1:] = cells[-1].rsplit(head.separator, 1)
    if len(cells) != len(names) or not cells[-1]:
        raise Malformed(at, f"{len(cells)} cells, expected {', '.join(names)}")
    return dict(zip(names, cells, strict=True))


def _figure(name: str, cell: str, at: int) -> float:
    """A count, or a time in seconds; times without a unit are nanoseconds. Raises Malformed."""
    if name == "contended" and re.fullmatch("[0-9]{1,18}", cell, re.ASCII):
        return int(cell)
    number, _, unit = cell.partition(" ")
    plain = re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,9})?", number, re.ASCII)
    if name == "contended" or not plain or (unit or "ns") not in UNITS:
        raise Malformed(at, f"{name} is {cell[:40]!r}, expected a number such as 42 or 13.64 us")
    return float(Decimal(number) * Decimal(UNITS[unit or "ns"]))
