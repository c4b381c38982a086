"""perf lock contention: waits for locks by caller, lock, task, owner or cgroup, as text or CSV.

Recorded with perf 6.1; modes of 6.2 to 6.13 as in its source (tools/perf/builtin-lock.c) and in the
mails of its authors.
"""

import re
from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

from nummodel.records.readers._reading import Column, Malformed, Reading

FIGURES = "contended|total wait|max wait|min wait|avg wait"
HEADER = re.compile(
    rf"\s*((?:(?:{FIGURES})\s+)+)(type\s+caller|pid\s+comm|pid\s+owner|address\s+symbol|cgroup)\s*"
)
CSV = re.compile(rf"# output: (?:{FIGURES})(\W{{1,8}}?) (?={FIGURES}|type|pid|address|cgroup)")
#: A row of a text, up to its second figure.
ROW = re.compile(r"\s*[0-9]{1,20}\s+[0-9.]{1,20} (ns|us|ms|s|m|h)\s")
STACK = re.compile(r"\s*0x[0-9a-f]{1,20}(\s|$)")
FOOTER = re.compile(
    r"=== output for debug ?===|# debug: |bad: [0-9]|bad rate: |histogram of |"
    r"\s*(task|stack|time|data|acquire|acquired|contended|release): [0-9]{1,20}$"
)
#: A remark or a command. Rows begin with a digit.
REMARK = re.compile(r"\s*([#$]|\.\.\.$|[^0-9\s].{0,200}?[#$] )")
TOKEN = re.compile(r"\s*(\S+)")
LOCK_TYPE = re.compile(r"\(([^()\s]{1,40})\)$")
UNITS = {"ns": "1e-9", "us": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600"}

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


def recognises(text: str) -> bool:
    """Whether a line is the header of a table of contention."""
    return any(_head(line) for line in text.split("\n") if " wait" in line or "contended" in line)


def parse(text: str) -> Reading:
    """A row for each printed row, of all tables in the text. Raises Malformed."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    head, part, cut = None, 0, ""
    lines = text.split("\n")
    for line, printed in enumerate(lines, 1):
        try:
            if found := _head(printed):
                head, part = found, part + 1
            elif kind := _other(printed, head):
                counts[kind] += 1
                head = None if kind in ("remark", "footer") else head
            elif head and printed.strip():
                rows.append({"part": part, **_row(head, printed, line, counts)})
                cut = "The last line has no end, so its name may be cut off."
        except Malformed:
            if line < len(lines) or not rows:
                raise
            cut = "The last line is cut off and left out."
    if not rows:
        raise Malformed(0, "no row below a header, expected locks with their waiting times")
    if not lines[-1].strip():
        cut = ""
    table = _table(pd.DataFrame(rows))
    columns = {name: COLUMNS[name] for name in table}
    return Reading(table, columns, tuple(_told(counts, len(rows), cut)))


def _head(line: str) -> Head | None:
    """The header of a table, or None."""
    if len(line) > 300:
        return None
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
    """What a line is that is no row: "footer", "stack", "remark", or "" for a row."""
    if FOOTER.match(line):
        return "footer"
    if head and not head.separator and STACK.match(line):
        return "stack"
    if ROW.match(line) and not head:
        return ""
    return "remark" if line.strip() and (not head or REMARK.match(line)) else ""


def _row(head: Head, line: str, at: int, counts: Counter[str]) -> dict[str, Any]:
    """The cells of a row. Raises Malformed."""
    cells = _csv_cells(head, line, at) if head.separator else _text_cells(head, line, at)
    row: dict[str, Any] = {}
    counts["stacktrace"] += "stacktrace" in cells
    cells.pop("stacktrace", None)
    for name in head.figures:
        row[name.replace(" ", "_")] = _figure(name, cells[name], at)
    counts["odd"] += _odd(row, cells)
    cells = {name: cell for name, cell in cells.items() if name not in head.figures}
    if "pid" in cells and not re.fullmatch("-?[0-9]{1,10}", cells["pid"], re.ASCII):
        raise Malformed(at, f"pid is {cells['pid'][:40]!r}, expected a whole number")
    return row | {name: int(cell) if name == "pid" else cell for name, cell in cells.items()}


def _text_cells(head: Head, line: str, at: int) -> dict[str, str]:
    """The cells of a row in columns; a time has two words, a name is the rest of the line."""
    cells, end = {}, 0
    for name in [*head.figures, *head.keys[:-1]]:
        words = []
        for _ in range(2 if name.endswith("wait") else 1):
            if not (word := TOKEN.match(line, end)):
                raise Malformed(at, f"no {name}, expected {', '.join(head.figures + head.keys)}")
            words.append(word[1])
            end = word.end()
        cells[name] = " ".join(words)
    last, rest = head.keys[-1], line[end:]
    # Three blanks part the columns, any more belong to the name.
    name = rest[3:] if rest.startswith("   ") and last != "cgroup" else rest.lstrip()
    if last == "symbol":
        return cells | _symbol(name)
    if not name.strip():
        raise Malformed(at, f"no {last}, expected {', '.join(head.figures + head.keys)}")
    return {**cells, last: name}


def _symbol(name: str) -> dict[str, str]:
    """The name of a lock, and its type, which perf prints in brackets from 6.3 on."""
    if found := LOCK_TYPE.search(name, max(0, len(name) - 42)):
        return {"symbol": name[: found.start()].rstrip(), "type": found[1]}
    return {"symbol": name}


def _csv_cells(head: Head, line: str, at: int) -> dict[str, str]:
    """The cells of a row between separators, of which a name may have some, too."""
    names = head.figures + head.keys
    cells = line.split(head.separator, len(names) - 1)
    if names[-1] == "stacktrace" and len(cells) == len(names) - 1:
        names = names[:-1]
    elif names[-2:] == ["symbol", "type"] and len(cells) == len(names):
        cells = line.split(head.separator, len(names) - 2)
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


def _odd(row: dict[str, Any], cells: dict[str, str]) -> bool:
    """Whether the mean is not the total by the number, as far as the printed digits tell."""
    if not row.get("contended") or "total_wait" not in row or "avg_wait" not in row:
        return False
    number, total, mean = row["contended"], row["total_wait"], row["avg_wait"]
    # perf divides whole nanoseconds.
    tolerance = _half(cells["total wait"]) / number + _half(cells["avg wait"]) + 1e-9
    return abs(total / number - mean) > tolerance * (1 + 1e-6)


def _half(cell: str) -> float:
    """Half of the last digit that perf prints of a time: two decimals, or whole nanoseconds."""
    unit = cell.partition(" ")[2]
    return 0.005 * float(UNITS[unit]) if unit and unit != "ns" else 0


def _table(table: Any) -> Any:
    """The columns in their order, without the part if there is one only."""
    some = [name for name in COLUMNS if name in table and (name != "part" or table[name].max() > 1)]
    return table[some]


def _told(counts: Counter[str], rows: int, cut: str) -> list[str]:
    """Sentences about what the table does not have."""
    told = {
        "remark": "Lines outside of the tables, such as commands, are left out",
        "stack": "Lines of call stacks are left out",
        "stacktrace": "Stack traces at the end of rows are left out",
        "footer": "Lines about records that perf failed to collect are left out",
    }
    sentences = [f"{what}: {counts[kind]}." for kind, what in told.items() if counts[kind]]
    if counts["odd"]:
        sentences.append(
            f"avg wait is not total wait / contended in {counts['odd']} of {rows} rows."
        )
    return sentences + [cut] * bool(cut)
