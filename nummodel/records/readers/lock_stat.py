"""/proc/lock_stat of Linux, versions 0.2 to 0.4, or rows of it without the header.

Version 0.4 has the mean waiting and holding times; none are derived for older versions. Admitted
with published outputs of 0.3 and 0.4; none of 0.2 was at hand.
"""

import re
from collections import Counter
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._reading import Column, Malformed, Reading

COUNTS = "con-bounces", "contentions", "acq-bounces", "acquisitions"
NAMES = (
    "con-bounces contentions waittime-min waittime-max waittime-total waittime-avg "
    "acq-bounces acquisitions holdtime-min holdtime-max holdtime-total holdtime-avg"
).split()
WITHOUT_MEANS = [name for name in NAMES if not name.endswith("avg")]
#: Contention points, and lines that part the locks.
POINT = re.compile(r"\s+[0-9]{1,20}\s+\[<[^>]{1,40}>\]")
RULE = re.compile(r"\s*(-{3,}|\.{3,})\s*")
REMARK = re.compile(r"\s*[#$]|[^:]{1,200}[#$] ")

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


def recognises(text: str) -> bool:
    """Whether a text has the header, or one of the first lines has the figures of a lock."""
    if "lock_stat version 0." in text or re.search(r"^ *class name +con-bounces ", text, re.M):
        return True
    return any(_unnamed(line) for line in text[:100_000].split("\n")[:200])


def parse(text: str) -> Reading:
    """A row for each lock and mode. Raises Malformed for lines that are not of lock_stat."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    names: list[str] = []
    part, begun, cut = 0, False, False
    lines = text.split("\n")
    for line, printed in enumerate(lines, 1):
        try:
            if kind := _other(printed):
                counts[kind] += 1
                begun &= kind not in ("head", "remark")
                names = _names(printed, line) if printed.split()[:2] == ["class", "name"] else names
                continue
            row = _row(printed, names or _unnamed(printed), line)
            if line == len(lines) and not re.search(r"\.[0-9]{2}$", printed):
                raise Malformed(line, "a last figure that is cut off, expected two decimals")
            part += not begun
            begun = True
            rows.append({"part": part, **row})
        except Malformed:
            if line < len(lines) or not rows:
                raise
            cut = True
    if not rows:
        raise Malformed(0, "no lock, expected rows such as 'unix_table_lock: 110 112 0.21 ...'")
    table = pd.DataFrame(rows)
    table = table[[n for n in COLUMNS if n in table and (n != "part" or part > 1)]]
    return Reading(table, {n: COLUMNS[n] for n in table}, tuple(_told(counts, rows, cut)))


def _other(line: str) -> str:
    """What a line is that has no figures of a lock: a "head", a "point" and so on, else ""."""
    begin = line.split(None, 2)[:2]
    if not begin:
        return "blank"
    if begin == ["class", "name"] or begin == ["lock_stat", "version"]:
        return "head"
    if RULE.fullmatch(line):
        return "rule"
    if line.startswith("*WARNING*"):
        return "warning"
    at = line.find(" [<")
    if at > 0 and POINT.match(line, len(line[:at].rstrip().rstrip("0123456789").rstrip())):
        return "point"
    return "remark" if REMARK.match(line) or "/proc/lock_stat" in line else ""


def _names(line: str, at: int) -> list[str]:
    """The columns of a header. Raises Malformed for others than those known."""
    names = line.split()[2:]
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
    """The figures of a lock. Raises Malformed."""
    name, *cells = line.rsplit(None, len(names)) if names else [""]
    if not names or not name.endswith(":") or len(cells) != len(names):
        expected = f"a name, a colon and {len(names) or '12 or 10'} figures"
        raise Malformed(at, f"{line.strip()[:60]!r}, expected {expected}")
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


def _odd(row: dict[str, Any], time: str, count: str) -> bool:
    """Whether a mean is not the total by the number, as far as the printed digits tell."""
    total, mean = row.get(f"{time}_total"), row.get(f"{time}_avg")
    if total is None or mean is None or not row.get(count):
        return bool(mean)
    # The kernel cuts a mean to nanoseconds, then rounds to hundredths of a microsecond.
    return abs(total / row[count] - mean) > (0.005 + 0.001 + 0.005 / row[count]) * 1.001e-6


def _told(counts: Counter[str], rows: list[dict[str, Any]], cut: bool) -> list[str]:
    """Sentences about what the table does not have."""
    told = {
        "point": "Contention points are left out",
        "remark": "Lines outside of lock_stat, such as commands, are left out",
        "warning": "Warnings of the kernel are left out",
    }
    sentences = [f"{what}: {counts[kind]}." for kind, what in told.items() if counts[kind]]
    for time, count in (("waittime", "contentions"), ("holdtime", "acquisitions")):
        if odd := sum(_odd(row, time, count) for row in rows):
            what = f"{time}-avg differs from {time}-total / {count}"
            sentences.append(f"{what} in {odd} of {len(rows)} rows.")
    return sentences + ["The last line is cut off and left out."] * cut
