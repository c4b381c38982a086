"""perf lock contention: waits for locks by caller, lock, task, owner or cgroup, as text or CSV.

Recorded with perf 6.1; modes of 6.2 to 6.13 as in its source (tools/perf/builtin-lock.c) and in the
mails of its authors.
"""

import re
from functools import cache
from typing import Any

from nummodel.records.readers._lines import seconds
from nummodel.records.readers._printed import Head, Printed, Seen
from nummodel.records.readers._reading import Column, Malformed

COLUMNS = {
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
FIGURE = "(?:contended|(?:total|max|min|avg) wait)"
SUBJECT = r"(?:type[ \t]+caller|pid[ \t]+(?:comm|owner)|address[ \t]+symbol|cgroup)"
NAME = f"(?:{FIGURE}|type|caller|pid|comm|owner|address|symbol|cgroup|stacktrace)"
TEXT = rf"(?P<names>(?:{FIGURE}[ \t]+){{1,5}}{SUBJECT})(?P<separator>)[ \t]*$"
CSV = rf"# output: (?P<names>{FIGURE}(?P<separator>\W{{1,8}}? )(?:{NAME}(?P=separator))*{NAME})$"
#: How rows begin: no other line of a text does.
ROW = re.compile(r"[0-9]{1,20}\s+[0-9.]{1,20} (?:ns|us|ms|s|m|h)\s")
CELLS = {"contended": "[0-9]{1,18}", "pid": "-?[0-9]{1,10}"}
CELLS |= {n: r"[0-9]{1,20}(?:\.[0-9]{1,9})?" for n, column in COLUMNS.items() if column.unit == "s"}


@cache
def _pattern(names: str, separator: str) -> re.Pattern | None:
    """A row below a header. In a text, three blanks stand before the last name, which may begin
    with more, and perf prints the type of a lock in brackets from 6.3 on. In CSV, a name may have
    separators, too. None for a header that has a name twice.
    """
    columns = [name.replace(" ", "_") for name in re.findall(NAME, names)]
    if len({*columns}) < len(columns) or (columns[-1] == "symbol" and "type" in columns):
        return None
    between, key = (re.escape(separator), ".*?") if separator else (r"\s+", r"\S+")
    unit = "" if separator else " (?:ns|us|ms|s|m|h)"
    cells = [
        f"(?P<{name}>{CELLS.get(name, key)}{unit * name.endswith('wait')})" for name in columns
    ]
    if columns[-1] == "stacktrace":
        cells[-2:] = [f"{cells[-2]}(?:{between}(?P<stacktrace>.*))?"]
    elif columns[-2:] == ["symbol", "type"]:
        cells[-2:] = ["(?P<symbol>.*)", "(?P<type>.+)"]
    elif columns[-1] == "symbol":
        cells[-1] = r"(?P<symbol>.*?)(?:\s*\((?P<type>[^()\s]{1,40})\))?"
    else:
        cells[-1] = rf"(?P<{columns[-1]}>.*\S.*)"
    last = between if separator else r"(?: {3}|\s+|$)"
    return re.compile(between.join(cells[:-1]) + last + cells[-1], re.ASCII)


def _row(seen: Seen, line: str, at: int) -> list[dict[str, Any]] | None:
    """The cells of a row; times without a unit are nanoseconds. Raises Malformed."""
    names, separator = seen.said.get("names", ""), seen.said.get("separator", "")
    if not names or line.startswith("#") or not (separator or ROW.match(line)):
        return None
    pattern = _pattern(names, separator)
    if not pattern or not (found := pattern.fullmatch(line)):
        raise Malformed(at, f"{line[:60]!r}, expected cells of {' '.join(names.split())}")
    cells = {name: cell for name, cell in found.groupdict().items() if cell is not None}
    stacks = cells.pop("stacktrace", None) is not None
    seen.left_out["Stack traces at the end of rows are left out"] += stacks
    return [{name: _cell(name, cell, at) for name, cell in cells.items()}]


def _cell(name: str, cell: str, at: int) -> float | str:
    """A time in seconds, a number, or a name."""
    if name.endswith("wait"):
        return seconds(cell if " " in cell else f"{cell}ns", at, name)
    return int(cell) if name in CELLS else cell


def _whole(seen: Seen, line: str) -> bool:
    """Whether the last row is whole: its name may be cut, but none of its figures."""
    if ROW.match(line) or seen.said.get("separator"):
        seen.left_out["Names at the end of the text, which may be cut off"] += 1
    return True


PERF_LOCK = Printed(
    known=(rf"^[ \t]*{TEXT}", rf"^[ \t]*{CSV}"),
    heads=(
        Head(TEXT, begins=True),
        Head(CSV, begins=True),
        Head(r"0x[0-9a-f]{1,20}(?:\s|$)", "Lines of call stacks are left out"),
        Head(
            r"=== output for debug ?===|# debug: |bad: [0-9]|bad rate: |histogram of "
            r"|(?:task|stack|time|data|acquire|acquired|contended|release): [0-9]{1,20}$",
            "Lines about records that perf failed to collect are left out",
        ),
    ),
    row=_row,
    columns=COLUMNS,
    whole=_whole,
    expected="no row below a header, expected locks with their waiting times",
)
recognises, parse = PERF_LOCK.recognises, PERF_LOCK.parse
